"""Brings messages from the disk into memory before they are due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from copy import copy
from dataclasses import dataclass
from math import inf
from typing import Final, TypeVar

import anyio

from purgatory import Purgatory
from purgatory.delayed import schedule
from purgatory.delayed.horizon import Horizon
from purgatory.delayed.message import Location, Message
from purgatory.delayed.storage.agenda import home_of
from purgatory.delayed.storage.dead_letters import DeadLetter
from purgatory.delayed.storage.requests import Put, Stored
from purgatory.delayed.storage.store import Store
from purgatory.delayed.threads import Threads
from purgatory.delayed.waiting_room import WaitingRoom
from purgatory.errors import PurgatoryClosed

M = TypeVar("M", Message, DeadLetter)

# Messages of one read. To park them holds the loop for about a millisecond.
_PIECE: Final = 200
# Messages of a piece of a listing, and bytes after which the piece ends early.
_LISTED: Final = 1_000
_BYTES: Final = 1 << 23

logger = logging.getLogger("purgatory.delayed")


@dataclass(eq=False, repr=False)
class Loader:
    """Knows where the messages are that are due soon. Reads them, and parks them in a purgatory.

    A new message whose slot is soon goes to the agenda at once. The messages of a slot file go there when the
    `horizon` passes their slot. For `due` see `WaitingRoom`, and for `seal` see `Horizon`.
    """

    store: Store
    purgatory: Purgatory
    clock: Callable[[], float]
    due: Callable[[Message, float], None]
    seal: Callable[[], Awaitable[int]]

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.threads = Threads(self.store)
        # By token, the messages that are read next.
        self._next: dict[int, Location] = {}
        # Held while messages are between the agenda and the purgatory.
        self._reading = asyncio.Lock()
        # Set when there is something to read.
        self._changed = asyncio.Event()
        # By token, since when a message cannot be read.
        self._unreadable: dict[int, float] = {}
        self.room = WaitingRoom(self.purgatory, self.clock, self.due, self._put, self._changed.set)
        self.horizon = Horizon(self.threads, self.clock, self.seal, self._changed.set)
        # The difference between the wall clock and the loop's clock, at the last look.
        self._offset = self.clock() - self._loop.time()

    def is_soon(self, due: int) -> bool:
        return self.store.slots.slot_of(due) < self.horizon.slot

    def stored(self, put: Put, stored: Stored) -> None:
        self.horizon.stored(home_of(stored.position), put.soon)
        if not put.soon:
            return
        if put.due <= self._now() + schedule.AHEAD and self.room.is_open and not self.threads.closed:
            self.room.park(Message(stored.token, put.due, put.name, put.payload, stored.position))
        else:
            self._put(Location(put.due, stored.position, stored.token))

    def _put(self, location: Location) -> None:
        """Let a message be read before it is due."""
        self.store.agenda.put(location.due, location.position, location.token)
        if self.store.agenda.next_due == location.due:
            self._changed.set()

    async def withdraw(self, token: int, due: int) -> tuple[Location, float] | None:
        """Take out a message that is due soon, unless it is being delivered or has ended.

        Returns also the seconds until its next attempt. Raises OSError when its slot cannot be read, and
        PurgatoryClosed when the store is closed meanwhile.
        """
        unread = await self.horizon.indexed(self.store.slots.slot_of(due))
        async with self._reading:
            if self.threads.closed:
                raise PurgatoryClosed(f"{self.store.path} has been closed")
            withdrawn = self.room.withdraw(token)
            if withdrawn is None:
                found = self._next.pop(token, None) or self.store.agenda.remove(due, token)
                withdrawn = found and (found, 0.0)
            self.horizon.taken.set()
        if withdrawn is None and unread is not None:
            raise copy(unread)
        return withdrawn

    def restore(self, location: Location, seconds: float) -> None:
        if self.threads.closed:
            return
        if location.failures:
            self.room.wait_again(location, seconds)
        else:
            self._put(location)

    def ended(self, message: Message | Location) -> None:
        """Forget a message that was delivered, cancelled, set aside or lost."""
        self._unreadable.pop(message.token, None)
        self.horizon.ended(message)

    async def read_ahead(self) -> None:
        """Park messages a second before they are due, until it is cancelled."""
        while True:
            self._changed.clear()
            self._follow_clock()
            if not await self._read_piece():
                with anyio.move_on_after(self._pause()):
                    await self._changed.wait()

    def _pause(self) -> float:
        """Seconds until there may be something to read, or a message must follow the wall clock."""
        due = self.store.agenda.next_due
        if due is None:
            return schedule.LOOK if self.room.loaded else inf
        if not self.room.is_open:
            return schedule.LOOK
        until = (due - schedule.AHEAD - self._now()) / 1000
        return min(schedule.LOOK, max(schedule.BETWEEN_READS, until))

    async def _read_piece(self) -> bool:
        """Read some messages. Returns whether there was any, and room for it."""
        async with self._reading:
            room = self.room.room
            if not room:
                self.room.starved = True
                return False
            if not self._next:
                if self.room.is_open:
                    new = self.store.agenda.take(self._now() + schedule.AHEAD, min(_PIECE, room))
                    self._next.update((location.token, location) for location in new)
                    self.horizon.taken.set()
                # New messages and messages that have failed both get their turn.
                self._next.update((location.token, location) for location in self.room.take_again(_PIECE))
            if not self._next:
                return False
            places = list(self._next.values())
            reads = await self.threads.read(self.store.read, places)
            for location, read in zip(places, reads, strict=False):
                del self._next[location.token]
                if isinstance(read, OSError):
                    self._not_read(location)
                    continue
                self._unreadable.pop(location.token, None)
                if read is None:
                    # It is damaged, and does not keep its file.
                    self.ended(location)
                else:
                    self.room.park(read)
        return True

    def _not_read(self, location: Location) -> None:
        """Read a message again later. After an hour it is lost: it keeps its file, and all later segments."""
        now = self._loop.time()
        if now - self._unreadable.setdefault(location.token, now) < schedule.LOST:
            self.room.wait_again(location, schedule.UNREADABLE)
        else:
            words = "%s: a message due at %d was lost: it cannot be read"
            logger.error(words, self.store.path, location.due)
            self.ended(location)

    def _follow_clock(self) -> None:
        """When the wall clock was set, let all messages in memory follow it."""
        offset = self.clock() - self._loop.time()
        if abs(offset - self._offset) >= schedule.STEP:
            self._offset = offset
            self.horizon.early.set()
            self.room.follow_clock()

    async def pieces(self, listing: Iterator[M]) -> AsyncIterator[list[M]]:
        """What is read from whole files, up to 1,000 messages or 8 MiB at a time."""
        while piece := await self.threads.search(_piece, listing):
            yield piece

    async def close(self) -> None:
        """End the threads after the calls that they have. The messages stay on the disk."""
        async with self._reading:
            self.horizon.close()
        await self.threads.close()

    def _now(self) -> int:
        return int(self.clock() * 1000)


def _piece(listing: Iterator[M]) -> list[M]:
    piece: list[M] = []
    size = 0
    for message in listing:
        piece.append(message)
        size += len(message.payload)
        if len(piece) == _LISTED or size >= _BYTES:
            break
    return piece
