"""The records of one partition, on the timing wheel of this instance."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import anyio

from examples.delayed.forwarder import Forwarder
from examples.delayed.request import POSITION, ProducerRecord, Record, Request, position
from examples.delayed.wheel.ownership import Ownership
from examples.delayed.wheel.positions import Positions, PositionsFile
from purgatory import Purgatory
from purgatory.delayed import DelayedMessages, IdTaken

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
    `purgatory` holds the records that are due and not done. ``end()`` is the offset behind the last record
    of the partition.

    `store` has to be open while the readers call. `purgatory` is open longer.
    """

    def __init__(
        self,
        number: int,
        directory: Path,
        forwarder: Forwarder,
        ownership: Ownership,
        purgatory: Purgatory,
        end: Callable[[], Awaitable[int]],
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
        self._forwarder = forwarder
        self._ownership = ownership
        self._purgatory = purgatory
        self._end = end
        directory.mkdir(parents=True, exist_ok=True)
        self._file = PositionsFile(directory / "positions.json")
        self.positions = self._file.stored or Positions(0, 0)
        # Keys of the purgatory. The others are ids.
        self._owner, self._moved, self._idle = ("owner", number), ("moved", number), ("idle", number)
        self._delivering: set[str] = set()
        # Offsets of ids that were read, whose records have not ended here yet.
        self._done: dict[str, int] = {}
        # Offsets of ids that this instance has written, and has not read yet: they are at `_unread` or above.
        self._written: set[int] = set()
        self._unread = 0
        self._forwarding = 0
        # Held by the record that waits for room on the disk.
        self._retrying = anyio.Lock(fast_acquire=True)
        self._is_full = False

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
        offsets = {id.offset: self._offset_of(id) for id in ids if id.offset not in self._written}
        self._written.difference_update(id.offset for id in ids)
        # Nobody has forwarded a record that does not exist. Waiting for one would hold up all partitions.
        end = self.positions.records
        if max(offsets.values(), default=-1) >= end:
            end = await self._end()
        async with anyio.create_task_group() as group:
            for done, record in offsets.items():
                if 0 <= record < end:
                    group.start_soon(self._clear, record, done)
                else:
                    logger.error("record %d of %s has no id", done, self._forwarder.topics.done)
        self._move(Positions(self.positions.records, following))

    async def read(self, end: int) -> bool:
        """Wait until the records below the offset `end` are stored. False if the disk is full before."""
        await self._purgatory.wait_until(
            lambda: self.positions.records >= end or self._is_full, [self._moved], None
        )
        return self.positions.records >= end

    async def cleared(self, end: int) -> None:
        """Wait until the ids below the offset `end` are cleared."""
        await self._purgatory.wait_until(lambda: self.positions.done >= end, [self._moved], None)

    @property
    def disk_bytes(self) -> int:
        """Bytes that the store has written."""
        statistics = self.store.statistics()
        return statistics.log_bytes + statistics.slot_bytes

    async def store_positions(self) -> None:
        """Write the positions to the disk. Raises OSError, and StoreFailed."""
        positions = self._safe_positions()
        # The store notes lazily what has ended. This waits for the notes.
        await self.store.find("no id")
        await anyio.to_thread.run_sync(self._file.store, positions)

    def store_last_positions(self) -> None:
        """Write the positions once the store is closed. Raises OSError."""
        self._file.store(self._safe_positions())

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

    def _move(self, positions: Positions) -> None:
        self.positions = positions
        self._purgatory.check_and_complete(self._moved)

    async def _add(self, record: Record) -> None:
        request = Request.parse(record, self._forwarder.topics)
        try:
            await self._schedule(request, position(record))
        except OSError:
            # There is no room for all records that come together. There may be for some of them.
            async with self._retrying:
                await self._retry(request, position(record))

    async def _retry(self, request: Request, id: str) -> None:
        while True:
            try:
                await self._schedule(request, id)
            except OSError as error:
                logger.error("partition %d waits for the disk: %s", self.number, error)
                self._is_full = True
                self._purgatory.check_and_complete(self._moved)
                await anyio.sleep(_AGAIN)
            else:
                self._is_full = False
                return

    async def _schedule(self, request: Request, id: str) -> None:
        try:
            await self.store.schedule(request.encode(), at=request.due / 1000, id=id)
        except ValueError as error:
            reason = f"the wheel does not store it: {error}"
            await self._schedule(request.without_content(reason, self._forwarder.topics), id)
        except IdTaken as error:
            raise ValueError(
                f"{id} is another record than the one that this instance has stored: the topic was deleted "
                "and created again; start with another directory"
            ) from error

    def _offset_of(self, id: Record) -> int:
        """The offset of the record that was forwarded; -1 if `id` names no record of this partition."""
        match = POSITION.fullmatch(id.key or b"")
        return int(match[2]) if match is not None and int(match[1]) == self.number else -1

    async def _clear(self, record: int, offset: int) -> None:
        await self._purgatory.wait_until(lambda: self.positions.records > record, [self._moved], None)
        id = f"{self.number}-{record}"
        self._done[id] = offset
        self._purgatory.check_and_complete(id)
        if id in self._delivering:
            return
        try:
            receipt = await self.store.find(id)
            if receipt is None or await self.store.cancel(receipt):
                self._done.pop(id, None)
            # Otherwise it is about to be delivered, and ends there.
        except OSError as error:
            logger.error("record %s is cleared when it is due: %s", id, error)

    async def _deliver(self, id: str, payload: bytes, due: float) -> None:
        self._delivering.add(id)
        try:
            while await self._is_our_turn(id):
                # This may take long. The lease is confirmed behind it.
                cancelled = await self._forwarder.is_cancelled(id)
                if await self._ownership.confirm(self.number) and id not in self._done:
                    await self._forward(id, None if cancelled else Request.decode(payload))
                    break
        finally:
            self._delivering.remove(id)
        self._done.pop(id, None)

    async def _is_our_turn(self, id: str) -> bool:
        """Wait until this instance is the owner, or somebody has forwarded the record: False then."""
        await self._purgatory.wait_until(
            lambda: id in self._done or self.number in self._ownership.owned, [id, self._owner], None
        )
        return id not in self._done

    async def _forward(self, id: str, request: Request | None) -> None:
        """Forward a record, and tell the others. None stands for one that is cancelled."""
        self._forwarding += 1
        try:
            if request is None:
                self._forwarder.statistics.cancelled += 1
            else:
                await self._forwarder.forward(request)
            done = ProducerRecord(self._forwarder.topics.done, id.encode(), b"", partition=self.number)
            offset = await self._forwarder.send(done)
            if offset >= self._unread:
                self._written.add(offset)
        finally:
            self._forwarding -= 1
            self._purgatory.check_and_complete(self._idle)
