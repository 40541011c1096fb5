"""Brings messages from the disk into memory before they are due."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from math import inf
from typing import Final, NamedTuple

import anyio

from purgatory import Purgatory
from purgatory.delayed.agenda import Agenda
from purgatory.delayed.dead_letters import DeadLetter
from purgatory.delayed.message import Location, Message
from purgatory.delayed.requests import Put, Stored
from purgatory.delayed.retention import Retention
from purgatory.delayed.store import Store
from purgatory.delayed.waiting_message import Attempt
from purgatory.delayed.waiting_room import WaitingRoom
from purgatory.errors import PurgatoryClosed

# Milliseconds between two turns. A message that is due within one or two turns stays in the log.
TURN: Final = 10_000
# Milliseconds before its due time at which a message is read.
_AHEAD: Final = 1_000
# Seconds after which a message is read again that could not be read.
_UNREADABLE: Final = 10.0
# Messages of one read. To park them holds the loop for about a millisecond.
_PIECE: Final = 200
# Positions in memory, after which no further slot is indexed.
_POSITIONS: Final = 2_000_000
# Seconds after which a step of the wall clock is noticed, and the smallest one that matters.
_LOOK: Final = 0.5
_STEP: Final = 0.005
# Bytes of the log, after which a turn comes early.
_LONG: Final = 1 << 25
# Seconds until a full disk is tried again.
_AGAIN: Final = 1.0

logger = logging.getLogger("purgatory.delayed")


class Withdrawn(NamedTuple):
    """A message that was taken out to cancel it. After failures it has waited `until` another attempt."""

    location: Location
    failures: int
    until: float


class Loader:
    """Knows which messages are due soon, and where they are. Reads them, and parks them in a purgatory.

    All slots below the horizon are soon. What is scheduled for them stays in the log; their files are read,
    and never written again but for what has ended. The horizon moves on every ten seconds: then the log is
    spread, so that the files of the slots that the horizon passes are complete, and these are indexed.
    """

    def __init__(
        self,
        store: Store,
        purgatory: Purgatory,
        clock: Callable[[], float],
        due: Callable[[Attempt], None],
        seal: Callable[[], Awaitable[int]],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._seal = seal
        self._loop = asyncio.get_running_loop()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="purgatory delayed reader")
        self._mover = ThreadPoolExecutor(1, thread_name_prefix="purgatory delayed mover")
        self._retention = Retention(store, self._mover, failed)
        self._agenda = Agenda()
        # Messages that are read next, and how often their delivery has failed.
        self._next: deque[tuple[Location, int]] = deque()
        # Held while messages are between the agenda and the purgatory.
        self._reading = asyncio.Lock()
        # The first slot that is not soon, and the first one that is not indexed yet.
        self.horizon = self._horizon()
        self._indexed = 0
        self._progress = asyncio.Event()
        # Why the last turn has failed, and the slots that could not be read.
        self._stuck: OSError | None = None
        self._unread_slots: dict[int, OSError] = {}
        # Set when there is something to read.
        self._changed = asyncio.Event()
        self.room = WaitingRoom(purgatory, clock, due, self._changed.set)
        self._closed = False
        # Set when positions were taken from the agenda.
        self._taken = asyncio.Event()
        # Set when a turn must come early: the log is long, or the clock was set.
        self._turn_early = asyncio.Event()
        self._spread_at = _LONG
        # The last segment that was to be spread.
        self._sealed = 0
        # The difference between the wall clock and the loop's, at the last look.
        self._offset = clock() - self._loop.time()

    def is_soon(self, due: int) -> bool:
        return self._store.slots.slot_of(due) < self.horizon

    # New messages

    def stored(self, put: Put, stored: Stored) -> None:
        """Take care of a new message."""
        if self._store.log.written >= self._spread_at:
            self._turn_early.set()
        if not put.soon:
            return
        self._retention.add_message(self._store.home_of(stored.position))
        if put.due <= self._now() + _AHEAD and self.room.is_open and not self._closed:
            self.room.park(Message(stored.token, put.due, put.name, put.payload, stored.position))
        else:
            self._put(Location(put.due, stored.position, stored.token))

    def _put(self, location: Location) -> None:
        """Let a message be read before it is due."""
        self._agenda.put(location)
        if self._agenda.next_due == location.due:
            self._changed.set()

    # Cancelling

    async def withdraw(self, token: int, due: int) -> Withdrawn | None:
        """Take out a message that is due soon and was not tried yet, or waits for another attempt.

        Returns None if there is none. Raises OSError when its slot cannot be read, and PurgatoryClosed when
        the store is closed meanwhile.
        """
        slot = self._store.slots.slot_of(due)
        while slot >= self._indexed and not self._closed:
            if self._stuck is not None:
                raise copy(self._stuck)
            await self._progress.wait()
        unread: OSError | None = self._unread_slots.get(slot)
        async with self._reading:
            if self._closed:
                raise PurgatoryClosed(f"{self._store.path} has been closed")
            operation = self.room.withdraw(token)
            if operation is not None:
                return Withdrawn(operation.location, operation.failures, operation.until)
            for location, failures in self._next:
                if location.token == token:
                    self._next.remove((location, failures))
                    return Withdrawn(location, failures, 0.0)
            found = self._agenda.remove(due, token)
        if found is None and unread is not None:
            raise copy(unread)
        return None if found is None else Withdrawn(found, 0, 0.0)

    def restore(self, withdrawn: Withdrawn) -> None:
        """Put back what `withdraw` has taken out."""
        location, failures, until = withdrawn
        if self._closed:
            return
        if failures:
            self.room.wait_again(location, failures, until - self._clock())
        else:
            self._put(location)

    # The life of a message in memory

    def wait_again(self, attempt: Attempt, seconds: float) -> None:
        """Let a message whose delivery has failed wait for another attempt. It is read again then."""
        self.room.left(attempt.message)
        self.room.wait_again(attempt.message.location, attempt.failures + 1, seconds)

    def ended(self, message: Message | Location) -> None:
        """Forget a message that was delivered, cancelled or set aside."""
        self._retention.ended(message)

    # Reading ahead

    async def read_ahead(self) -> None:
        """Park messages a second before they are due, until it is cancelled."""
        while True:
            self._changed.clear()
            self._follow_clock()
            if not await self._read_piece():
                with anyio.move_on_after(self._pause()):
                    await self._changed.wait()

    def _pause(self) -> float:
        """Seconds until there may be something to read, or a message that has to follow the wall clock."""
        due = self._agenda.next_due
        if due is None:
            return _LOOK if self.room.loaded else inf
        if not self.room.is_open:
            return _LOOK
        return min(_LOOK, max(0.0, (due - _AHEAD - self._now()) / 1000))

    async def _read_piece(self) -> bool:
        """Read some messages. Returns whether there was any, and room for it."""
        async with self._reading:
            room = self.room.room
            if not room:
                self.room.starve()
                return False
            if not self._next:
                if self.room.is_open:
                    new = self._agenda.take(self._now() + _AHEAD, min(_PIECE, room))
                    self._next.extend((location, 0) for location in new)
                    self._taken.set()
                # Both get their turn: those that fail hold up no others, and are not held up by them.
                self._next.extend(self.room.take_again(_PIECE))
            if not self._next:
                return False
            for message in await self._read([location for location, _ in self._next]):
                location, failures = self._next.popleft()
                if message is None:
                    # It does not keep its file.
                    self.ended(location)
                elif isinstance(message, OSError):
                    self.room.wait_again(location, failures, _UNREADABLE)
                elif failures:
                    self.room.try_again(Attempt(message, failures))
                else:
                    self.room.park(message)
        return True

    async def _read(self, locations: list[Location]) -> list[Message | OSError | None]:
        """Read messages; not all of them if they are large. None stands for a damaged one."""
        return await self._loop.run_in_executor(self._reader, self._store.read, locations)

    def _follow_clock(self) -> None:
        """When the wall clock was set, let all messages in memory follow it."""
        offset = self._clock() - self._loop.time()
        if abs(offset - self._offset) >= _STEP:
            self._offset = offset
            self._turn_early.set()
            self.room.follow_clock()

    # Turns

    async def turn_on(self) -> None:
        """Move the horizon on, every ten seconds and when the log is long, until it is cancelled."""
        while True:
            try:
                stuck = await self._turn()
            except OSError as error:
                stuck = error
                # Those who cancel need not wait.
                self._pass(0)
            if stuck is not None and self._stuck is None:
                where = self._store.path
                logger.error("%s: messages wait in the log and may be late: %s", where, stuck)
            self._stuck = stuck
            with anyio.move_on_after(TURN / 1000 if stuck is None else _AGAIN):
                await self._turn_early.wait()

    async def _turn(self) -> OSError | None:
        """Spread the log, and index the slots that have become soon.

        If the log cannot be spread, returns why. Then the slots are indexed of which the log has nothing.
        Their deliveries make room where the disk is full.
        """
        self.horizon = max(self.horizon, self._horizon())
        self._retention.remove_left_over()
        stuck: OSError | None = None
        self._unread_slots = {}
        try:
            await self.spread()
        except OSError as error:
            stuck = error
            for slot in await self._loop.run_in_executor(
                self._reader, self._store.slots_in_log, self._sealed
            ):
                self._unread_slots[slot] = error
        for slot in await self._loop.run_in_executor(self._reader, self._store.slots.present, self.horizon):
            if self._retention.has_slot(slot) or slot in self._unread_slots:
                continue
            while len(self._agenda) > _POSITIONS:
                self._taken.clear()
                await self._taken.wait()
            try:
                index = await self._loop.run_in_executor(self._reader, self._store.index, slot)
            except OSError as error:
                # The next turn tries again.
                logger.error("%s: the file of slot %d cannot be read: %s", self._store.path, slot, error)
                self._unread_slots[slot] = error
                continue
            self._retention.add_slot(slot, index.count)
            for due, offsets in index.offsets.items():
                self._agenda.add(due, offsets, index.tokens[due])
            self._changed.set()
            self._pass(slot + 1)
        self._pass(self.horizon)
        return stuck

    def _pass(self, slot: int) -> None:
        """All slots below `slot` are indexed, or cannot be."""
        self._indexed = max(self._indexed, slot)
        progress, self._progress = self._progress, asyncio.Event()
        progress.set()

    async def spread(self) -> None:
        """Move what is due later from the log to its slot files. Raises OSError."""
        self._turn_early.clear()
        self._spread_at = self._store.log.written + _LONG
        self._sealed = await self._seal()
        await self._loop.run_in_executor(self._mover, self._store.spread, self._sealed, self._now())
        self._retention.remove_segments()

    # Threads

    async def set_aside(self, message: Message, reason: str) -> None:
        """Add a message to the dead letters. Raises OSError."""
        await self._loop.run_in_executor(self._mover, self._store.set_aside, message, reason)

    async def dead_letters(self) -> list[DeadLetter]:
        return await self._loop.run_in_executor(self._reader, self._store.dead_letters)

    async def pending(self) -> AsyncIterator[list[Message]]:
        """All messages that are still to come, some at a time. Raises OSError."""
        # What only the log has could move on while the slot files are read.
        await self.spread()
        pieces = self._store.pending()
        while piece := await self._loop.run_in_executor(self._reader, next, pieces, None):
            yield piece

    async def close(self) -> None:
        """End the threads, when they have done what they were told. The messages stay on the disk."""
        async with self._reading:
            self._closed = True
            self._retention.close()
            self._pass(self.horizon)
        for thread in (self._reader, self._mover):
            await self._loop.run_in_executor(thread, int)
            thread.shutdown()

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _horizon(self) -> int:
        return self._store.slots.slot_of(self._now() + 2 * TURN) + 1
