"""The classes of docs/how-to/leases.md lose no lease and no connection, and hand out none twice."""

from __future__ import annotations

import asyncio
import random
import runpy
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from purgatory import DelayedOperation, Purgatory
from purgatory.testing import VirtualTimeLoop
from tests.docs.programs import DOCS, Program, programs_of
from tests.operations import a_few_turns

LEASES, POOL = programs_of(DOCS / "how-to" / "leases.md")


def names_of(program: Program, directory: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the program defines. Its `main` does not run."""
    path = directory / f"{program.name}.py"
    path.write_text(program.code)
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "run", lambda main: main.close())
        return SimpleNamespace(**runpy.run_path(str(path)))


@pytest.fixture
def leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, purgatory: Purgatory) -> Any:
    return names_of(LEASES, tmp_path, monkeypatch).Leases(purgatory, seconds=60)


@pytest.fixture
def of_pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return names_of(POOL, tmp_path, monkeypatch)


@pytest.mark.parametrize("first", ["the task is cancelled", "the lease ends"])
async def test_a_lease_goes_to_the_next_in_line_when_the_first_task_is_cancelled(
    leases: Any, first: str
) -> None:
    held = await leases.acquire("printer", wait=60)
    ada, grace = (asyncio.create_task(leases.acquire("printer", wait=60)) for _ in range(2))
    await a_few_turns()
    if first == "the lease ends":
        leases.release("printer", held)
    ada.cancel()
    leases.release("printer", held)

    lease = await grace

    assert ada.cancelled()
    assert leases.held == {"printer": lease}


async def test_a_lease_that_ended_before_its_task_was_cancelled_is_released_once(leases: Any) -> None:
    held = await leases.acquire("printer", wait=60)
    ada = asyncio.create_task(leases.acquire("printer", wait=60))
    await a_few_turns()
    leases.release("printer", held)
    leases.held["printer"].reschedule(0)
    ada.cancel()
    await asyncio.wait([ada])
    assert ada.cancelled()
    assert leases.held == {}


async def test_a_holder_that_has_lost_its_lease_does_not_release_the_lease_of_another(leases: Any) -> None:
    lost = await leases.acquire("printer", wait=60)
    lost.reschedule(0)
    lease = await leases.acquire("printer", wait=60)
    leases.release("printer", lost)
    assert leases.held == {"printer": lease}


@pytest.mark.parametrize("end", ["is answered", "is cancelled"])
async def test_a_request_whose_turn_comes_while_the_purgatory_closes_gets_none(leases: Any, end: str) -> None:
    class Stop(DelayedOperation[None]):
        def try_complete(self) -> bool:
            return False

        def on_expiration(self) -> None:
            leases.release("printer", held)

    leases.purgatory.try_complete_else_watch(Stop(60), ["stop"])
    held = await leases.acquire("printer", wait=60)
    request = asyncio.create_task(leases.acquire("printer", wait=60))
    await a_few_turns()
    closing = asyncio.create_task(leases.purgatory.aclose())
    while leases.held:  # noqa: ASYNC110  # an Event would come a turn too late
        await asyncio.sleep(0)
    if end == "is cancelled":
        request.cancel()
    await closing
    await asyncio.wait([request])
    assert request.cancelled() if end == "is cancelled" else request.result() is None
    assert leases.held == {}


@pytest.mark.parametrize("first", ["the task is cancelled", "a connection comes back"])
async def test_a_connection_goes_to_the_next_in_line_when_the_first_task_is_cancelled(
    of_pools: SimpleNamespace, purgatory: Purgatory, first: str
) -> None:
    pool = of_pools.Pool(purgatory, [])
    got: list[str] = []

    async def work(name: str) -> None:
        async with pool.connection(60) as connection:
            got.append(f"{name} has {connection}")

    ada, grace = (asyncio.create_task(work(name)) for name in ("ada", "grace"))
    await a_few_turns()
    if first == "the task is cancelled":
        ada.cancel()
    pool.give_back("connection 1")
    ada.cancel()
    await grace
    assert ada.cancelled()
    assert got == ["grace has connection 1"]
    assert list(pool.free) == ["connection 1"]


async def test_a_worker_that_is_cancelled_gives_its_connection_back(
    of_pools: SimpleNamespace, purgatory: Purgatory
) -> None:
    pool = of_pools.Pool(purgatory, ["connection 1"])
    worker = asyncio.create_task(of_pools.work("ada", 60, pool))
    await a_few_turns()
    assert not pool.free
    worker.cancel()
    await asyncio.wait([worker])
    assert list(pool.free) == ["connection 1"]


CONNECTIONS = [f"connection {number}" for number in range(4)]


async def keep_connections(
    pool: Any, chance: random.Random, rounds: int, block: Callable[[float], object]
) -> Counter[str]:
    """Have `rounds` workers use the pool, cancel some of them, and hold the loop now and then with `block`.

    Returns how many workers have come to which end.
    """
    held: set[str] = set()
    ends: Counter[str] = Counter()

    async def work() -> None:
        wait, limit = chance.choice([0.001, 0.004, 1]), chance.choice([0.001, 0.002, 0.004, 1])
        try:
            async with asyncio.timeout(limit), pool.connection(wait) as connection:
                assert connection not in held
                held.add(connection)
                try:
                    await asyncio.sleep(chance.choice([0, 0, 0.001]))
                finally:
                    held.remove(connection)
            ends["done"] += 1
        except TimeoutError:
            ends["over time"] += 1
        except asyncio.CancelledError:
            ends["cancelled"] += 1
            raise

    workers: list[asyncio.Task[None]] = []
    for _ in range(rounds):
        workers.append(asyncio.create_task(work()))
        if chance.random() < 0.3:
            await asyncio.sleep(chance.choice([0, 0, 0, 0.001]))
        if chance.random() < 0.02:
            block(0.003)
        if chance.random() < 0.3:
            chance.choice(workers[-10:]).cancel()
    await asyncio.wait(workers)
    for worker in workers:
        if not worker.cancelled():
            worker.result()
    assert held == set()
    assert sorted(pool.free) == CONNECTIONS
    return ends


@pytest.fixture
def unclaimed(of_pools: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The requests that have given a connection back that nobody got."""
    requests: list[object] = []
    give_back = of_pools.ConnectionRequest.on_unclaimed

    def on_unclaimed(request: object) -> None:
        requests.append(request)
        give_back(request)

    monkeypatch.setattr(of_pools.ConnectionRequest, "on_unclaimed", on_unclaimed)
    return requests


@pytest.mark.parametrize("seed", range(2))
async def test_a_pool_keeps_its_connections_in_10_000_rounds_of_virtual_time(
    of_pools: SimpleNamespace, unclaimed: list[object], virtual_time: VirtualTimeLoop, seed: int
) -> None:
    async with Purgatory() as purgatory:
        pool = of_pools.Pool(purgatory, CONNECTIONS)
        ends = await keep_connections(pool, random.Random(seed), 10_000, virtual_time.jump)
        assert purgatory.statistics().pending == 0
    assert min(ends["done"], ends["over time"], ends["cancelled"]) > 500
    assert len(unclaimed) > 50


@pytest.mark.real_time
async def test_a_pool_keeps_its_connections_on_every_loop(
    of_pools: SimpleNamespace, unclaimed: list[object], purgatory: Purgatory
) -> None:
    pool = of_pools.Pool(purgatory, CONNECTIONS)
    ends = await keep_connections(pool, random.Random(1), 2_000, time.sleep)
    assert purgatory.statistics().pending == 0
    assert len(ends) == 3
    assert unclaimed
