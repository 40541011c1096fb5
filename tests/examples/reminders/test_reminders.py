"""Several web workers use one store of delayed messages, which a process of its own has open."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest

from examples.reminders.remote_messages import OwnerUnavailable, RemoteMessages
from purgatory.delayed import DelayedMessages, IdTaken
from tests.free_ports import free_ports

pytestmark = [pytest.mark.slow, pytest.mark.real_time]

ROOT = Path(__file__).parents[3]
WRITERS = 8
KILLS = 3
SERVERS = {
    "uvicorn": ["uvicorn", "--factory", "examples.reminders.web:create_app", "--workers", "2", "--port"],
    "gunicorn": [
        *("gunicorn", "examples.reminders.web:create_app()", "--workers", "2"),
        *("--worker-class", "uvicorn_worker.UvicornWorker", "--bind"),
    ],
}


@contextmanager
def short_path() -> Iterator[Path]:
    # The path of a socket has at most 107 bytes, and that of pytest's directories may be longer.
    with tempfile.TemporaryDirectory() as path:
        yield Path(path) / "run"


class Owner:
    """The process that owns the store. What it delivers is in a file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.output = directory.with_name("delivered")
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "examples.reminders.owner", str(self.directory)]
        with self.output.open("ab") as output:
            return subprocess.Popen(command, cwd=ROOT, stdout=output)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.process = self._start()

    def delivered(self) -> list[str]:
        return [line.rpartition(":")[0] for line in self.output.read_text().splitlines()]


@contextmanager
def an_owner() -> Iterator[Owner]:
    with short_path() as path:
        owner = Owner(path)
        try:
            yield owner
        finally:
            owner.kill()


@pytest.fixture
def owner() -> Iterator[Owner]:
    with an_owner() as owner:
        yield owner


@pytest.fixture(scope="module")
def lasting_owner() -> Iterator[Owner]:
    """For the tests that do not stop it."""
    with an_owner() as owner:
        yield owner


@asynccontextmanager
async def messages_of(owner: Owner) -> AsyncIterator[RemoteMessages]:
    """The messages of an owner that is there."""
    async with RemoteMessages(owner.directory) as messages:
        await messages.cancel("are you there?")
        yield messages


@contextmanager
def web_workers(command: Sequence[str], directory: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    port = free_ports(1)
    bind = f"127.0.0.1:{port}" if "--bind" in command else str(port)
    # The servers put their working directory in front of the path, and the core there is interpreted.
    path = os.pathsep.join([os.path.abspath(each) for each in sys.path if each])
    environment = {**os.environ, "PYTHONPATH": path, "REMINDERS": str(directory)}
    command = [sys.executable, "-m", *command, bind]
    with subprocess.Popen(command, cwd=directory.parent, env=environment) as process:
        try:
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.terminate()


@asynccontextmanager
async def a_client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client that connects anew for each request, so that all workers get some."""
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=30) as client:
        with anyio.fail_after(30):
            while True:
                try:
                    await client.get("/")
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
        yield client


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110  # other processes set it
            await asyncio.sleep(0.02)


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """The process ids of the workers. (multiprocessing's resource tracker is a child, too.)"""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    lines = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
    return [child for child, line in lines.items() if b"resource_tracker" not in line]


@pytest.mark.parametrize("server", SERVERS)
def test_no_acknowledged_reminder_is_lost_when_the_owner_and_a_worker_are_killed(
    server: str, owner: Owner
) -> None:
    asyncio.run(kill_under_load(server, owner))


async def kill_under_load(server: str, owner: Owner) -> None:
    acknowledged: list[str] = []
    refused: list[int] = []
    done = False

    def reached(count: int) -> bool:
        return len(acknowledged) >= count

    async def write(client: httpx.AsyncClient, number: int) -> None:
        count, at = 0, time.time() + 1
        while not done:
            id = f"{number}-{count}"
            try:
                answer = await client.put(f"/reminders/{id}", params={"at": at}, content=b"pay, please")
            except httpx.TransportError:
                # The worker was killed, perhaps after the owner had stored the reminder: the client
                # asks for the same reminder again.
                continue
            if answer.status_code == 204:
                acknowledged.append(id)
            else:
                refused.append(answer.status_code)
            count, at = count + 1, time.time() + 1

    with web_workers(SERVERS[server], owner.directory) as (url, process):
        async with a_client(url) as client, anyio.create_task_group() as writers:
            for number in range(WRITERS):
                writers.start_soon(write, client, number)
            for kill in range(KILLS):
                more = len(acknowledged) + 5 * WRITERS
                await until(partial(reached, more))
                owner.kill()
                # The clients wait for the owner meanwhile.
                await asyncio.sleep(0.3)
                owner.restart()
                if kill == 1:
                    os.kill(workers_of(process)[0], signal.SIGKILL)
            done = True
        assert refused == []
        await until(lambda: set(acknowledged) <= set(owner.delivered()))


async def test_a_reminder_that_is_asked_for_twice_is_one_reminder(lasting_owner: Owner) -> None:
    async with messages_of(lasting_owner) as messages:
        at = time.time() + 1
        id = f"order/ü/{at}"
        await messages.schedule(b"pay, please", at=at, id=id)
        await messages.schedule(b"pay, please", at=at, id=id)
        with pytest.raises(IdTaken):
            await messages.schedule(b"something else", at=at, id=id)
        await messages.schedule(b"the last one", at=at + 0.1, id=f"last {at}")
    await until(lambda: f"last {at}" in lasting_owner.delivered())
    assert lasting_owner.delivered().count(id) == 1


async def test_a_cancelled_reminder_is_not_delivered(lasting_owner: Owner) -> None:
    async with messages_of(lasting_owner) as messages:
        at = time.time() + 1
        await messages.schedule(b"pay, please", at=at, id=f"order {at}")
        await messages.schedule(b"the last one", at=at + 0.1, id=f"last {at}")
        cancelled = [await messages.cancel(f"order {at}") for _ in range(2)]
    assert cancelled == [True, False]
    await until(lambda: f"last {at}" in lasting_owner.delivered())
    assert f"order {at}" not in lasting_owner.delivered()


@pytest.mark.parametrize("id", ["..", "a/b", "%2F", "?#&=", " ", "\0"])
async def test_every_id_reaches_the_store(lasting_owner: Owner, id: str) -> None:
    async with messages_of(lasting_owner) as messages:
        await messages.schedule(b"pay, please", at=time.time() + 3600, id=id)
        assert await messages.cancel(id)


async def test_what_the_store_refuses_is_refused(lasting_owner: Owner) -> None:
    async with messages_of(lasting_owner) as messages:
        with pytest.raises(ValueError, match=r"1,?024"):
            await messages.schedule(b"", at=time.time(), id="x" * 1025)
        with pytest.raises(ValueError, match=r"1,?024"):
            await messages.cancel("x" * 1025)


async def test_a_second_owner_is_refused_and_leaves_the_first_one_its_socket(lasting_owner: Owner) -> None:
    command = [sys.executable, "-m", "examples.reminders.owner", str(lasting_owner.directory)]
    async with messages_of(lasting_owner) as messages:
        second = await anyio.run_process(command, cwd=ROOT, check=False)
        assert second.returncode == 1
        assert b"StoreLocked" in second.stderr
        assert not await messages.cancel("are you still there?")


async def test_without_an_owner_a_worker_gives_up_after_its_patience() -> None:
    with short_path() as directory:
        async with RemoteMessages(directory, patience=0.25) as messages:
            with pytest.raises(OwnerUnavailable, match="the owner of the store has not answered"):
                await messages.schedule(b"pay, please", at=time.time(), id="order")


async def test_an_owner_whose_store_fails_ends_with_an_error(owner: Owner) -> None:
    async with messages_of(owner):
        (owner.directory / "messages" / "lock").unlink()
        async with RemoteMessages(owner.directory, patience=1) as hasty:
            with pytest.raises(OwnerUnavailable):
                await hasty.schedule(b"pay, please", at=time.time(), id="order")
    await until(lambda: owner.process.poll() is not None)
    assert owner.process.returncode == 1


async def test_sigterm_ends_the_owner_in_good_order(owner: Owner) -> None:
    async with messages_of(owner) as messages:
        await messages.schedule(b"pay, please", at=time.time() + 3600, id="order")
        owner.process.terminate()
        await until(lambda: owner.process.poll() is not None)
    async with DelayedMessages(owner.directory / "messages", never) as store:
        assert [message.receipt.id async for message in store.pending()] == ["order"]


async def never(id: str, payload: bytes, due: float) -> None:
    raise AssertionError(id)
