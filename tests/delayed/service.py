"""A service that uses delayed messages, as the tests need it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from purgatory.delayed import DelayedMessages
from purgatory.delayed.open_store import OpenStore
from tests.delayed.storage.simulated_disk import SimulatedDisk

PATH: Final = Path("/service/messages")
# The wall clock when virtual time begins: an hour, a slot and a millisecond begin as well.
BEGIN: Final = 1_700_002_800.0


class WallClock:
    """Seconds since the epoch, which go on with virtual time. A test sets it by `offset`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.offset = BEGIN

    def __call__(self) -> float:
        return self.offset + self._loop.time()


class Delivered(NamedTuple):
    id: str
    payload: bytes
    due: float
    # The wall clock's time of the delivery.
    at: float

    @property
    def late(self) -> float:
        return self.at - self.due


class Service:
    """Takes the deliveries of its stores. `handle` runs in each of them, before it is `delivered`."""

    def __init__(self, disk: SimulatedDisk, wall: WallClock) -> None:
        self.disk = disk
        self.wall = wall
        self.attempts: list[Delivered] = []
        self.delivered: list[Delivered] = []
        self.handle: Callable[[Delivered], Awaitable[object]] = self._take

    @staticmethod
    async def _take(_: Delivered) -> None:
        pass

    async def deliver(self, id: str, payload: bytes, due: float) -> None:
        attempt = Delivered(id, payload, due, self.wall())
        self.attempts.append(attempt)
        await self.handle(attempt)
        self.delivered.append(attempt)

    @property
    def payloads(self) -> list[bytes]:
        return [delivered.payload for delivered in self.delivered]

    def store(self, **options: Any) -> DelayedMessages:
        return DelayedMessages(PATH, self.deliver, clock=self.wall, disk=self.disk, **options)

    def files(self, directory: str) -> list[str]:
        """The names in a directory of the store; for the slots, those in its hours."""
        names = self.disk.names(PATH / directory)
        if directory == "slots":
            return [name for hour in names for name in self.disk.names(PATH / "slots" / hour)]
        return names


def open_store(delayed: DelayedMessages) -> OpenStore:
    """The parts of a store that is open."""
    assert delayed._store is not None
    return delayed._store


class SlowDisk:
    """Holds an operation of one thread until a test lets it go on."""

    def __init__(self, service: Service, operation: str | None, thread: str) -> None:
        self.operation = operation
        self.free = threading.Event()
        self.begun = asyncio.Event()
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        service.disk.watch = self._watch

    def _watch(self, operation: str) -> None:
        if operation == self.operation and self._thread in threading.current_thread().name:
            self._loop.call_soon_threadsafe(self.begun.set)
            assert self.free.wait(30), f"the test does not let {operation!r} of the disk go on"
