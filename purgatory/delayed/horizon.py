"""The horizon. Messages before it are due soon: they stay in the log, and the agenda says where they are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from math import inf
from typing import Final

import anyio

from purgatory.delayed import schedule
from purgatory.delayed.message import Location, Message
from purgatory.delayed.storage.agenda import home_of
from purgatory.delayed.threads import Threads

# Positions in memory, after which no further slot is indexed.
_POSITIONS: Final = 2_000_000
# Bytes of the log, after which a turn comes early.
_LONG: Final = 1 << 25

logger = logging.getLogger("purgatory.delayed")


@dataclass(eq=False, repr=False)
class Horizon:
    """All slots before the horizon `slot` are soon. A new message for such a slot stays in the log. The file
    of such a slot is read, and only the ends of messages are still written to it.

    The horizon moves on in a turn, every ten seconds. Then the log is spread, so that the files of the slots
    that the horizon passes are complete. Another task indexes these files: it puts their messages into the
    agenda. It waits when there are too many positions in memory. The log is spread all the same.

    The horizon counts the messages that are due soon and have not ended, by file. A turn removes the files
    without messages: segments of the log in their order, because a later segment says how messages of earlier
    segments have ended.

    `seal` ends a segment of the log. `changed` is called when the agenda has got messages.
    """

    threads: Threads
    clock: Callable[[], float]
    seal: Callable[[], Awaitable[int]]
    changed: Callable[[], None]

    def __post_init__(self) -> None:
        self._store = self.threads.store
        # Messages that have not ended, by segment of the log and by slot whose file was indexed.
        self._segments = self._store.segments
        self._slots: dict[int, int] = {}
        # A message in the log may be due later than soon, because the clock was set back.
        last = self._store.slots.slot_of(self._store.agenda.last_due or 0)
        self.slot = max(self._first_not_soon(), last + 1)
        # The first slot that is not indexed yet.
        self._indexed = 0
        self._progress = asyncio.Event()
        # The slots before this one are to be indexed, except the slots that are in the log, too.
        self._complete = 0
        self._in_log: dict[int, OSError] = {}
        self._to_index = asyncio.Event()
        # Slots that could not be indexed, and why no slot can be.
        self._unread: dict[int, OSError] = {}
        self._stuck: OSError | None = None
        # Set when positions were taken from the agenda.
        self.taken = asyncio.Event()
        # Set when a turn must come early: the log is long, or the clock was set.
        self.early = asyncio.Event()
        self._spread_at = _LONG
        # A slot file is not read while it is written: its end would look torn.
        self._files = asyncio.Lock()

    def stored(self, segment: int, soon: bool) -> None:
        """Count a new message if it is soon. Move on early if the log is long."""
        self._segments[segment] += soon
        if self._store.log.written >= self._spread_at:
            self.early.set()

    def ended(self, message: Message | Location) -> None:
        """Count a message no longer, because it was delivered, cancelled, set aside or lost."""
        home = home_of(message.position)
        if home:
            self._segments[home] -= 1
        else:
            self._slots[self._store.slots.slot_of(message.due)] -= 1

    async def indexed(self, slot: int) -> OSError | None:
        """Wait until a slot is indexed. Returns the error of its file, or raises the error of all files."""
        while slot >= self._indexed:
            if self._stuck is not None:
                raise copy(self._stuck)
            await self._progress.wait()
        return self._unread.get(slot)

    def close(self) -> None:
        self._pass(self.slot)

    async def turn_on(self) -> None:
        """Move the horizon on, every ten seconds and when the log is long, until it is cancelled."""
        stuck: OSError | None = None
        while True:
            before, stuck = stuck, await self._turn()
            if stuck is not None and before is None:
                self._report(stuck)
            with anyio.move_on_after(schedule.TURN / 1000 if stuck is None else schedule.FULL_DISK):
                await self.early.wait()

    async def _turn(self) -> OSError | None:
        """Spread the log, and let the slots be indexed that have become soon.

        If the log cannot be spread, returns why. Then only the slots are indexed that are not in the log.
        Their deliveries make room on a full disk.
        """
        self.slot = slot = max(self.slot, self._first_not_soon())
        stuck: OSError | None = None
        in_log: set[int] = set()
        try:
            sealed = await self._end_segment()
            try:
                await self._move_on(sealed)
            except OSError as error:
                stuck = error
                in_log = await self.threads.search(self._store.mover.slots_in_log, sealed)
        except OSError as error:
            # Nobody knows which slots are in the log, too.
            self._fail(error)
            return error
        self._complete = slot
        self._in_log = {} if stuck is None else dict.fromkeys(in_log, stuck)
        self._to_index.set()
        return stuck

    async def spread(self) -> None:
        """Move what is due later from the log to its slot files. Raises OSError."""
        await self._move_on(await self._end_segment())

    async def _end_segment(self) -> int:
        """End the segment of the log. Returns the last segment that can be spread."""
        self.early.clear()
        self._spread_at = self._store.log.written + _LONG
        return await self.seal()

    async def _move_on(self, sealed: int) -> None:
        # Then the ends of their messages need not be written.
        for slot in [slot for slot, messages in self._slots.items() if not messages]:
            try:
                await self.threads.move(self._store.slots.remove, slot)
                del self._slots[slot]
            except OSError as error:
                logger.error("%s: the file of slot %d stays: %s", self._store.path, slot, error)
        first = not self._complete
        if first:
            # A crash may have left much in the log. The messages that are soon come first.
            async with self._files:
                await self.threads.move(self._store.mover.move_soon, sealed, self.slot)
            self._complete = self.slot
            self._to_index.set()
        # After `move_soon`, the files that are read are not written.
        async with nullcontext() if first else self._files:
            await self.threads.move(self._store.mover.move, sealed, int(self.clock() * 1000))
        # Without the segments whose messages have ended.
        self._segments = +self._segments
        spread = self._store.mover.checkpoint.spread
        try:
            await self.threads.move(self._store.log.remove_oldest, spread, self._segments)
        except OSError as error:
            logger.error("%s: a segment of the log stays: %s", self._store.path, error)

    async def index_on(self) -> None:
        """Index the slots that are soon, until it is cancelled."""
        while True:
            with anyio.move_on_after(inf if self._stuck is None else schedule.FULL_DISK):
                await self._to_index.wait()
            self._to_index.clear()
            try:
                await self._index()
            except OSError as error:
                if self._stuck is None:
                    self._report(error)
                self._fail(error)
            else:
                self._stuck = None

    async def _index(self) -> None:
        """Index the slots whose files are complete, the earliest first."""
        end, unread = self._complete, dict(self._in_log)
        self._unread |= unread
        for slot in await self.threads.search(self._store.slots.present, end):
            if slot in self._slots or slot in unread:
                continue
            while len(self._store.agenda) > _POSITIONS:
                self.taken.clear()
                await self.taken.wait()
            try:
                async with self._files:
                    index = await self.threads.search(self._store.index, slot)
            except OSError as error:
                # The next turn tries again.
                logger.error("%s: the file of slot %d cannot be read: %s", self._store.path, slot, error)
                unread[slot] = self._unread[slot] = error
                continue
            self._unread.pop(slot, None)
            self._slots[slot] = len(index)
            self._store.agenda.add(index)
            self.changed()
            self._pass(slot + 1)
        self._unread = unread
        self._pass(end)

    def _pass(self, slot: int) -> None:
        """All slots before `slot` are indexed, or cannot be indexed."""
        self._indexed = max(self._indexed, slot)
        # All who wait look again.
        self._progress.set()
        self._progress.clear()

    def _fail(self, error: OSError) -> None:
        """No slot can be indexed. A call that cancels a message need not wait."""
        self._stuck = error
        self._pass(0)

    def _report(self, error: OSError) -> None:
        logger.error("%s: messages wait in the log and may be late: %s", self._store.path, error)

    def _first_not_soon(self) -> int:
        return schedule.horizon(int(self.clock() * 1000), self._store.slots.slot_ms)
