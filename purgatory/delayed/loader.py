"""Brings messages from the disk into memory before they are due."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from copy import copy
from itertools import islice
from math import inf
from typing import Final, NamedTuple

import anyio

from purgatory import Purgatory
from purgatory.delayed.agenda import Agenda
from purgatory.delayed.dead_letters import DeadLetter
from purgatory.delayed.log import home_of
from purgatory.delayed.message import Location, Message
from purgatory.delayed.requests import Put, Stored
from purgatory.delayed.retention import Retention
from purgatory.delayed.schedule import AHEAD, BETWEEN_READS, LOOK, LOST, STEP, UNREADABLE
from purgatory.delayed.store import Store
from purgatory.delayed.threads import Threads
from purgatory.delayed.turns import Turns
from purgatory.delayed.waiting_message import Attempt
from purgatory.delayed.waiting_room import WaitingRoom
from purgatory.errors import PurgatoryClosed

# Messages of one read. To park them holds the loop for about a millisecond.
_PIECE: Final = 200
# Dead letters of one read.
_LETTERS: Final = 10

logger = logging.getLogger("purgatory.delayed")


class Withdrawn(NamedTuple):
    """A message that was taken out to cancel it. After failures it has waited `until` another attempt."""

    location: Location
    failures: int
    until: float


class Loader:
    """Knows which messages are due soon, and where they are. Reads them, and parks them in a purgatory.

    What is scheduled for a slot that is soon goes to the agenda at once, and what is in slot files with the
    `turns`.
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
        self._loop = asyncio.get_running_loop()
        self._threads = Threads()
        in_log = store.take_index()
        self._retention = Retention(store, in_log.segments, self._threads, failed)
        self._agenda = Agenda()
        for moment, positions in in_log.positions.items():
            self._agenda.add(moment, positions, in_log.tokens[moment])
        # Messages that are read next, and how often their delivery has failed.
        self._next: deque[tuple[Location, int]] = deque()
        # Held while messages are between the agenda and the purgatory.
        self._reading = asyncio.Lock()
        # Set when there is something to read.
        self._changed = asyncio.Event()
        # By token, since when a message cannot be read.
        self._unreadable: dict[int, float] = {}
        self._closed = False
        self.room = WaitingRoom(purgatory, clock, AHEAD / 1000, due, self.put_back, self._changed.set)
        self.turns = Turns(
            store, self._agenda, self._retention, self._threads, clock, seal, self._changed.set
        )
        # The difference between the wall clock and the loop's, at the last look.
        self._offset = clock() - self._loop.time()

    def is_soon(self, due: int) -> bool:
        return self._store.slots.slot_of(due) < self.turns.horizon

    # New messages

    def stored(self, put: Put, stored: Stored) -> None:
        """Take care of a new message."""
        self.turns.log_has_grown()
        if not put.soon:
            return
        self._retention.add_message(home_of(stored.position))
        if put.due <= self._now() + AHEAD and self.room.is_open and not self._closed:
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
        unread = await self.turns.indexed(self._store.slots.slot_of(due))
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
            self.turns.agenda_has_shrunk()
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

    def is_early(self, attempt: Attempt) -> bool:
        """Whether the wall clock was set back while a message has waited for a worker.

        A message that was tried once has been due. Its next attempt follows the loop's clock.
        """
        return not attempt.failures and self._clock() < attempt.due

    def put_back(self, message: Message) -> None:
        """Let a message whose time has not come leave the memory. It is read again before it is due."""
        self.room.left(message)
        self._put(message.location)

    def ended(self, message: Message | Location) -> None:
        """Forget a message that was delivered, cancelled, set aside or lost."""
        self._unreadable.pop(message.token, None)
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
            return LOOK if self.room.loaded else inf
        if not self.room.is_open:
            return LOOK
        return min(LOOK, max(BETWEEN_READS, (due - AHEAD - self._now()) / 1000))

    async def _read_piece(self) -> bool:
        """Read some messages. Returns whether there was any, and room for it."""
        async with self._reading:
            room = self.room.room
            if not room:
                self.room.starve()
                return False
            if not self._next:
                if self.room.is_open:
                    new = self._agenda.take(self._now() + AHEAD, min(_PIECE, room))
                    self._next.extend((location, 0) for location in new)
                    self.turns.agenda_has_shrunk()
                # Both get their turn: those that fail hold up no others, and are not held up by them.
                self._next.extend(self.room.take_again(_PIECE))
            if not self._next:
                return False
            places = [location for location, _ in self._next]
            for message in await self._threads.read(self._store.read, places):
                location, failures = self._next.popleft()
                if isinstance(message, OSError):
                    self._not_read(location, failures)
                    continue
                self._unreadable.pop(location.token, None)
                if message is None:
                    # It is damaged, and does not keep its file.
                    self.ended(location)
                elif failures:
                    self.room.try_again(Attempt(message, failures, self._clock()))
                else:
                    self.room.park(message)
        return True

    def _not_read(self, location: Location, failures: int) -> None:
        """Read a message again later. After an hour it is lost: it keeps its file, and all later segments."""
        now = self._loop.time()
        if now - self._unreadable.setdefault(location.token, now) < LOST:
            self.room.wait_again(location, failures, UNREADABLE)
        else:
            logger.error(
                "%s: a message due at %d was lost: it cannot be read", self._store.path, location.due
            )
            self.ended(location)

    def _follow_clock(self) -> None:
        """When the wall clock was set, let all messages in memory follow it."""
        offset = self._clock() - self._loop.time()
        if abs(offset - self._offset) >= STEP:
            self._offset = offset
            self.turns.come_early()
            self.room.follow_clock()

    # The disk

    async def set_aside(self, message: Message, reason: str) -> None:
        """Add a message to the dead letters. Raises OSError."""
        await self._threads.move(self._store.set_aside, message, reason)

    async def dead_letters(self) -> AsyncIterator[list[DeadLetter]]:
        """The messages that were set aside, some at a time. Raises OSError."""
        letters = self._store.dead_letters()
        while piece := await self._threads.search(list, islice(letters, _LETTERS)):
            yield piece

    async def pending(self) -> AsyncIterator[list[Message]]:
        """All messages that are still to come, some at a time. Raises OSError."""
        # It keeps the list of what only the log has short. On a full disk the list is long.
        with suppress(OSError):
            await self.turns.spread()
        pieces = self._store.pending()
        while piece := await self._threads.search(next, pieces, None):
            yield piece

    async def close(self) -> None:
        """End the threads, when they have done what they were told. The messages stay on the disk."""
        async with self._reading:
            self._closed = True
            self._retention.close()
            self.turns.close()
        await self._threads.close()

    def _now(self) -> int:
        return int(self._clock() * 1000)
