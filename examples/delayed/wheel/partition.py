"""The records of one partition, on the timing wheel of this instance."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio

from examples.delayed.forwarder import Forwarder
from examples.delayed.request import Record, Request, position
from examples.delayed.wheel.ownership import Ownership
from examples.delayed.wheel.positions import Positions, load_positions, store_positions
from examples.delayed.wheel.stored_request import decode, encode
from examples.delayed.wheel.turn import Turn
from purgatory import Purgatory
from purgatory.delayed import DelayedMessages

# Records that are forwarded at a time. A failover repeats at most these.
WORKERS: Final = 100
# The brokers limit the size of a record.
_LARGEST: Final = 1 << 26
# A record that the cluster does not take is tried until it does. The forwarder rejects what no topic takes.
_ATTEMPTS: Final = 1 << 30
# Seconds until a full disk is tried again.
_AGAIN: Final = 1.0

logger = logging.getLogger("examples.delayed")


class PartitionWheel:
    """Stores all records of a partition, and at its due time forwards each, or waits until another has.

    Each partition has a store of its own: records whose owner has failed hold up their own partition only.
    `purgatory` holds the records that are due and not done.

    `store` has to be open while the readers call. `purgatory` is open longer.
    """

    def __init__(
        self,
        number: int,
        directory: Path,
        forwarder: Forwarder,
        ownership: Ownership,
        purgatory: Purgatory,
    ) -> None:
        self.number = number
        self.store = DelayedMessages(
            directory / "messages",
            self._deliver,
            workers=WORKERS,
            attempts=_ATTEMPTS,
            max_payload=_LARGEST,
            name=f"partition {number}",
        )
        self._file = directory / "positions.json"
        self._forwarder = forwarder
        self._ownership = ownership
        self._purgatory = purgatory
        directory.mkdir(parents=True, exist_ok=True)
        self._stored = load_positions(self._file)
        self.positions = self._stored or Positions(0, 0)
        self._delivering: set[str] = set()
        # Offsets of ids that were read, whose records are due and have not ended here yet.
        self._done: dict[str, int] = {}
        # Offsets of ids that this instance has written, and has not read yet: they are at `_unread` or above.
        self._written: set[int] = set()
        self._unread = 0
        self._forwarding = 0

    def __repr__(self) -> str:
        return f"<PartitionWheel {self.number} at {self.positions}>"

    # What the readers call

    async def add(self, records: Sequence[Record], following: int) -> None:
        """Store records. They are on the disk when this returns. Adding them again is harmless.

        `following` is the offset of the next record.
        """
        async with anyio.create_task_group() as group:
            for record in records:
                group.start_soon(self._add, record)
        self._move(Positions(following, self.positions.done))

    async def clear(self, ids: Sequence[Record], following: int) -> None:
        """Clear the records that were forwarded. It waits for those that were not read yet."""
        self._unread = following
        async with anyio.create_task_group() as group:
            for id in ids:
                if id.offset in self._written:
                    self._written.remove(id.offset)
                else:
                    group.start_soon(self._clear, (id.key or b"").decode(errors="replace"), id.offset)
        self._move(Positions(self.positions.records, following))

    async def read(self, end: int) -> None:
        """Wait until the records below the offset `end` are stored."""
        await self._purgatory.wait_until(lambda: self.positions.records >= end, [self._moved], None)

    async def cleared(self, end: int) -> None:
        """Wait until the ids below the offset `end` are cleared."""
        await self._purgatory.wait_until(lambda: self.positions.done >= end, [self._moved], None)

    def start_at(self, positions: Positions) -> None:
        """Read from these positions."""
        self.positions = positions

    @property
    def disk_bytes(self) -> int:
        """Bytes that the store has written."""
        statistics = self.store.statistics()
        return statistics.log_bytes + statistics.slot_bytes

    async def store_positions(self) -> None:
        """Write the positions to the disk, if they have changed. Raises OSError, and StoreFailed."""
        positions = self._safe_positions()
        # The store notes lazily what has ended. This waits for the notes, and fails if the store has.
        await self.store.find("no id")
        if positions != self._stored:
            await anyio.to_thread.run_sync(store_positions, self._file, positions)
            self._stored = positions

    def store_last_positions(self) -> None:
        """Write the positions once the store is closed. Raises OSError."""
        store_positions(self._file, self._safe_positions())

    def _safe_positions(self) -> Positions:
        """Where to begin after a crash: an id is read again unless its record has ended."""
        return Positions(self.positions.records, min(self._done.values(), default=self.positions.done))

    # What the ownership calls

    def owner_changed(self) -> None:
        """Let records that are due be forwarded, if this instance is the owner now."""
        self._purgatory.check_and_complete(self._owner)

    async def drained(self) -> None:
        """Wait until no record is being forwarded."""
        await self._purgatory.wait_until(lambda: not self._forwarding, [self._idle], None)

    # Parts

    # Keys of the purgatory. The others are ids.
    @property
    def _owner(self) -> tuple[str, int]:
        return "owner", self.number

    @property
    def _moved(self) -> tuple[str, int]:
        return "moved", self.number

    @property
    def _idle(self) -> tuple[str, int]:
        return "idle", self.number

    def _move(self, positions: Positions) -> None:
        self.positions = positions
        self._purgatory.check_and_complete(self._moved)

    async def _add(self, record: Record) -> None:
        request = Request.parse(record, self._forwarder.topics)
        payload, due = encode(request), request.due / 1000
        while True:
            try:
                await self.store.schedule(payload, at=due, id=position(record))
            except OSError as error:
                logger.error("partition %d waits for the disk: %s", self.number, error)
                await anyio.sleep(_AGAIN)
            else:
                self._forwarder.statistics.read += 1
                return

    async def _clear(self, id: str, offset: int) -> None:
        _, _, record = id.rpartition("-")
        if not record.isdecimal():
            logger.error("%s has an id that is none: %r", self._forwarder.topics.done, id)
            return
        await self._purgatory.wait_until(lambda: self.positions.records > int(record), [self._moved], None)
        if id not in self._delivering:
            receipt = await self.store.find(id)
            if receipt is None or await self.store.cancel(receipt):
                return
        # It is being delivered, or about to be.
        self._done[id] = offset
        self._purgatory.check_and_complete(id)
        if id not in self._delivering and await self.store.find(id) is None:
            # It has ended meanwhile.
            self._done.pop(id, None)

    async def _deliver(self, id: str, payload: bytes, due: float) -> None:
        self._delivering.add(id)
        try:
            while await self._is_our_turn(id):
                if await self._ownership.confirm(self.number):
                    await self._forward(id, decode(payload))
                    break
        finally:
            self._delivering.remove(id)
        self._done.pop(id, None)

    async def _is_our_turn(self, id: str) -> bool:
        turn = Turn(lambda: id in self._done, lambda: self.number in self._ownership.owned)
        return await self._purgatory.try_complete_else_watch(turn, (id, self._owner))

    async def _forward(self, id: str, request: Request) -> None:
        self._forwarding += 1
        try:
            await self._forwarder.deliver(request)
            topic = self._forwarder.topics.done
            offset = await self._forwarder.send(topic, id.encode(), b"", (), self.number)
            if offset >= self._unread:
                self._written.add(offset)
        finally:
            self._forwarding -= 1
            self._purgatory.check_and_complete(self._idle)
