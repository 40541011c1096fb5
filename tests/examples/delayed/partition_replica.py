"""A replica of one partition of the wheel, whose group and whose target are the test's."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from examples.delayed.forwarder import Forwarder, Statistics
from examples.delayed.request import Header, ProducerRecord, Request
from examples.delayed.settings import Topics
from examples.delayed.wheel.ownership import Ownership
from examples.delayed.wheel.partition import PartitionWheel
from purgatory import Purgatory

NUMBER = 3


@dataclass(frozen=True)
class StoredRecord:
    offset: int
    headers: tuple[Header, ...] = ()
    key: bytes | None = None
    value: bytes | None = b"value"
    partition: int = NUMBER
    timestamp: int = 0


def due_in(seconds: float, offset: int = 0) -> StoredRecord:
    at = b"%d" % round((time.time() + seconds) * 1000)
    return StoredRecord(offset, (("deliver-at", at), ("target", b"orders")))


def done(offset: int, id: bytes = b"3-0") -> StoredRecord:
    return StoredRecord(offset, key=id, value=b"")


class Target(Forwarder):
    """Remembers what is sent. Sending takes until `open` is set."""

    def __init__(self) -> None:
        self.topics, self.statistics = Topics(), Statistics()
        self.delivered: list[Request] = []
        self.ids: list[tuple[str, bytes | None, int | None]] = []
        self.changed = anyio.Event()
        self.cancelled: set[str] = set()
        self.asked = anyio.Event()
        self.open, self.answering = anyio.Event(), anyio.Event()
        self.open.set()
        self.answering.set()

    async def is_cancelled(self, id: str) -> bool:
        self.asked.set()
        await self.answering.wait()
        return id in self.cancelled

    async def forward(self, request: Request) -> None:
        await self.open.wait()
        self.delivered.append(request)

    async def send(self, record: ProducerRecord) -> int:
        self.ids.append((record.topic, record.key, record.partition))
        self.changed.set()
        return len(self.ids) - 1


class Owner(Ownership):
    """What the group says, as the test wants it. `fenced` members believe that they own a partition."""

    def __init__(self) -> None:
        self.owned = set()
        self.fenced = False
        self.asked = anyio.Event()

    async def confirm(self, partition: int) -> bool:
        self.asked.set()
        if self.fenced:
            self.owned = set()
        return not self.fenced


class Replica:
    """A partition with all that it needs."""

    def __init__(self, path: Path, purgatory: Purgatory) -> None:
        self.target = Target()
        self.owner = Owner()
        self.purgatory = purgatory
        self.end = 10
        self.wheel = PartitionWheel(NUMBER, path, self.target, self.owner, purgatory, self._end)

    async def _end(self) -> int:
        return self.end

    def own(self) -> None:
        self.owner.owned = {NUMBER}
        self.wheel.owner_changed()

    async def add(self, *records: StoredRecord) -> None:
        await self.wheel.add(records, records[-1].offset + 1)

    async def clear(self, *ids: StoredRecord) -> None:
        await self.wheel.clear(ids, ids[-1].offset + 1)

    async def waits(self, count: int = 1) -> None:
        """Return when so many records wait for their turn."""
        while self.purgatory.statistics().pending != count:
            await anyio.lowlevel.checkpoint()

    async def forgets(self, id: str = "3-0") -> None:
        """Return when the store no longer has a record."""
        while await self.wheel.store.find(id) is not None:
            pass


@asynccontextmanager
async def replica(path: Path) -> AsyncIterator[Replica]:
    """A replica that ends as at SIGTERM: nobody waits for what is due."""
    async with Purgatory() as purgatory:
        running = Replica(path, purgatory)
        with anyio.CancelScope() as scope:
            async with running.wheel.store:
                yield running
                scope.cancel()
                await anyio.lowlevel.checkpoint()
