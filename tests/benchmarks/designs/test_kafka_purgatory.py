"""Kafka's present purgatory: its behaviour, and the entries that it keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from functools import partial

from benchmarks.designs.alternative import Tally
from benchmarks.designs.kafka_today import DelayedOperation, KafkaToday
from purgatory.testing import VirtualTimeLoop


class Operation(DelayedOperation):
    """Completes once it is `ready`, or at the `ready_at`-th try; records the hooks that ran."""

    __slots__ = ("hooks", "ready", "ready_at", "then", "tries")

    def __init__(
        self, delay: float = 30.0, *, ready_at: int = 0, then: Callable[[], object] | None = None
    ) -> None:
        super().__init__(delay, 0, Tally())
        self.ready = False
        self.ready_at = ready_at
        self.tries = 0
        self.hooks: list[str] = []
        self.then = then

    def try_complete(self) -> bool:
        self.tries += 1
        return (self.ready or self.tries == self.ready_at) and self.force_complete()

    def on_complete(self) -> None:
        self.hooks.append("completed")
        if self.then is not None:
            self.then()

    def on_expiration(self) -> None:
        self.hooks.append("expired")


def parked(
    purgatory: KafkaToday, count: int, keys: Sequence[Hashable], delay: float = 30.0
) -> list[Operation]:
    operations = [Operation(delay) for _ in range(count)]
    for operation in operations:
        assert not purgatory.watch(operation, keys)
    return operations


def ready(operations: Sequence[Operation]) -> None:
    for operation in operations:
        operation.ready = True


async def test_an_operation_that_completes_at_once_is_not_watched(virtual_time: VirtualTimeLoop) -> None:
    async with KafkaToday(Tally()) as purgatory:
        operation = Operation(ready_at=1)
        assert purgatory.watch(operation, ["a"])
        assert (purgatory.held, len(purgatory.timer), operation.hooks) == (0, 0, ["completed"])


async def test_a_check_completes_those_that_can_in_order(virtual_time: VirtualTimeLoop) -> None:
    async with KafkaToday(Tally()) as purgatory:
        order: list[int] = []
        operations = [Operation(then=partial(order.append, number)) for number in range(3)]
        for operation in operations:
            purgatory.watch(operation, ["a", "b"])
        assert purgatory.check("a") == 0
        assert purgatory.check("nobody watches it") == 0
        ready([operations[2], operations[0]])
        assert purgatory.check("a") == 2
        assert order == [0, 2]
        assert purgatory.check("b") == 0
        assert len(purgatory.timer) == 1


async def test_an_operation_completes_or_expires_once(virtual_time: VirtualTimeLoop) -> None:
    async with KafkaToday(Tally()) as purgatory:
        (expired,) = parked(purgatory, 1, ["a"], 5.0)
        (completed,) = parked(purgatory, 1, ["b"], 5.0)
        ready([completed])
        assert purgatory.check("b") == 1
        await asyncio.sleep(4.999)
        assert expired.hooks == []
        await asyncio.sleep(0.002)
        assert expired.hooks == ["completed", "expired"]
        assert completed.hooks == ["completed"]
        ready([expired])
        assert purgatory.check("a") == 0
        assert not expired.force_complete()


async def test_a_completed_operation_leaves_the_timer_but_not_its_other_lists(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with KafkaToday(Tally()) as purgatory:
        ready(parked(purgatory, 100, ["a", "b", "c"]))
        assert purgatory.check("a") == 100
        assert (purgatory.held, len(purgatory.timer)) == (200, 0)
        # Until a check walks over them.
        assert purgatory.check("b") == 0
        assert purgatory.held == 100
        await asyncio.sleep(100.0)
        assert (purgatory.held, purgatory.walked) == (100, 0)


async def test_the_purge_comes_when_more_than_the_interval_have_completed_and_walks_over_every_list(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with KafkaToday(Tally()) as purgatory:
        alive = parked(purgatory, 5_000, ["d", "e"])
        ready(parked(purgatory, 1_000, ["a", "b", "c"]))
        purgatory.check("a")
        await asyncio.sleep(1.0)
        assert (purgatory.walked, purgatory.held) == (0, 12_000)
        assert purgatory.estimated_total_operations == 6_000
        ready(parked(purgatory, 1, ["a"]))
        purgatory.check("a")
        await asyncio.sleep(0.2)
        assert (purgatory.held, purgatory.walked) == (10_000, 12_000)
        assert purgatory.estimated_total_operations == 5_000
        await asyncio.sleep(1.0)
        assert purgatory.walked == 12_000
        ready(alive)
        assert purgatory.check("d") == 5_000


async def test_a_hook_may_check_and_watch_the_key_it_is_completed_from(virtual_time: VirtualTimeLoop) -> None:
    async with KafkaToday(Tally()) as purgatory:
        added = Operation()

        def interfere() -> None:
            ready([second])
            assert purgatory.check("a") == 1
            purgatory.watch(added, ["a"])

        first, second = Operation(then=interfere), Operation()
        for operation in (first, second):
            purgatory.watch(operation, ["a"])
        ready([first])
        assert purgatory.check("a") == 1
        assert (first.hooks, second.hooks, added.hooks) == (["completed"], ["completed"], [])
        ready([added])
        assert purgatory.check("a") == 1
        assert purgatory.held == 0
