"""Brings messages from the disk into memory before they are due."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import islice
from math import inf
from typing import Final

import anyio

from purgatory import Purgatory
from purgatory.delayed.agenda import Agenda
from purgatory.delayed.dead_letters import DeadLetter
from purgatory.delayed.message import Message
from purgatory.delayed.requests import Put, Stored
from purgatory.delayed.retention import Retention
from purgatory.delayed.store import Store
from purgatory.delayed.waiting_message import WaitingMessage
from purgatory.errors import PurgatoryClosed

# Milliseconds between two turns. A message that is due within one or two turns stays in the log.
TURN: Final = 10_000
# Milliseconds before its due time at which a message is read.
_AHEAD: Final = 1_000
# Messages that wait in memory, at most: for their due time, and for another attempt.
_WAITING: Final = 10_000
_RETRYING: Final = 100_000
# Bytes of their payloads, after which no more are read.
_BYTES: Final = 1 << 26
# Messages of one read. To park them holds the loop for about a millisecond.
_PIECE: Final = 200
# Dead letters of one read.
_LETTERS: Final = 10
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
        due: Callable[[WaitingMessage], None],
        seal: Callable[[], Awaitable[int]],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._purgatory = purgatory
        self._clock = clock
        self._due = due
        self._seal = seal
        self._loop = asyncio.get_running_loop()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="purgatory delayed reader")
        self._mover = ThreadPoolExecutor(1, thread_name_prefix="purgatory delayed mover")
        self._retention = Retention(store, self._mover, failed)
        self._agenda = Agenda()
        # Taken from the agenda, and not read yet.
        self._next: deque[tuple[int, int]] = deque()
        # Held while messages are between the agenda and the purgatory.
        self._reading = asyncio.Lock()
        # The first slot that is not soon, and the first one that is not indexed yet.
        self.horizon = self._horizon()
        self._indexed = 0
        self._progress = asyncio.Event()
        # Why the last turn has failed, and the slots and messages that could not be read.
        self._stuck: OSError | None = None
        self._unread_slots: dict[int, OSError] = {}
        self._unread: list[tuple[int, int]] = []
        # Whether messages wait for room in memory.
        self._starved = False
        # Set when there is something to read.
        self._changed = asyncio.Event()
        self._closed = False
        # Set when positions were taken from the agenda.
        self._taken = asyncio.Event()
        # Set when a turn must come early: the log is long, or the clock was set.
        self._turn_early = asyncio.Event()
        self._spread_at = _LONG
        # Messages in memory, those of them that wait for another attempt, and bytes of their payloads.
        self._loaded = 0
        self.retrying = 0
        self._bytes = 0
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
        home = self._store.home_of(stored.position)
        self._retention.add_message(home)
        if put.due <= self._now() + _AHEAD and self._has_room() and not self._closed:
            self._park(Message(stored.token, put.due, put.name, put.payload, home))
        else:
            self._agenda.add(put.due, (stored.position,))
            if self._agenda.next_due == put.due:
                self._changed.set()

    # Cancelling

    async def withdraw(self, token: int, due: int) -> WaitingMessage | None:
        """Take out a message that is due soon and was not tried yet, or waits for another attempt.

        Returns None if there is none. It may read the messages that are due in the same millisecond. Raises
        OSError when it cannot read them, and PurgatoryClosed when the store is closed meanwhile.
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
            for operation in self._purgatory.cancel_for_key(token):
                if isinstance(operation, WaitingMessage):
                    self._leave(operation)
                    return operation
            places = [place for place in (*self._next, *self._unread) if place[0] == due]
            places += self._agenda.at(due)
            while places:
                messages = await self._read(places[:_PIECE])
                for place, message in zip(places, messages, strict=False):
                    if isinstance(message, OSError):
                        unread = message
                    elif message is not None and message.token == token:
                        if place in self._next:
                            self._next.remove(place)
                        elif place in self._unread:
                            self._unread.remove(place)
                        else:
                            self._agenda.remove(*place)
                        return self._operation(message, 0, due / 1000)
                del places[: len(messages)]
        if unread is not None:
            raise copy(unread)
        return None

    def restore(self, operation: WaitingMessage) -> None:
        """Put back what `withdraw` has taken out."""
        if not self._closed:
            if operation.failures:
                self.retrying += 1
            self._enter(operation.message)
            self._wait(self._operation(operation.message, operation.failures, operation.until))

    # The life of a message in memory

    def wait_again(self, operation: WaitingMessage, seconds: float) -> None:
        """Let a message whose delivery has failed wait for another attempt."""
        self.retrying += 1
        again = self._operation(operation.message, operation.failures + 1, self._clock() + seconds)
        self._wait(again)

    def ended(self, message: Message) -> None:
        """Forget a message that was delivered, cancelled or set aside."""
        self._retention.ended(message)

    def left(self, message: Message) -> None:
        """Make room in memory for another message."""
        self._loaded -= 1
        self._bytes -= len(message.payload)
        # Not for each message: one read brings many.
        if self._starved and self._loaded - self.retrying <= _WAITING // 2:
            self._starved = False
            self._changed.set()

    def _enter(self, message: Message) -> None:
        if not self._loaded:
            # While there is a message in memory, `read_ahead` looks at the wall clock.
            self._changed.set()
        self._loaded += 1
        self._bytes += len(message.payload)

    def _leave(self, operation: WaitingMessage) -> None:
        if operation.failures:
            self.retrying -= 1
        self.left(operation.message)

    def _park(self, message: Message) -> None:
        self._enter(message)
        self._wait(self._operation(message, 0, message.due / 1000))

    def _operation(self, message: Message, failures: int, until: float) -> WaitingMessage:
        return WaitingMessage(message, failures, until, until - self._clock(), self._expired)

    def _wait(self, operation: WaitingMessage) -> None:
        self._purgatory.try_complete_else_watch(operation, (operation.message.token,))

    def _expired(self, operation: WaitingMessage) -> None:
        if operation.failures:
            self.retrying -= 1
        elif self._clock() < operation.until:
            # The wall clock was set back meanwhile.
            self._wait(self._operation(operation.message, 0, operation.until))
            return
        self._due(operation)

    def _has_room(self) -> bool:
        waiting = self._loaded - self.retrying
        return waiting < _WAITING and self.retrying < _RETRYING and self._bytes < _BYTES

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
            return _LOOK if self._loaded else inf
        if not self._has_room():
            return _LOOK
        return min(_LOOK, max(0.0, (due - _AHEAD - self._now()) / 1000))

    async def _read_piece(self) -> bool:
        """Read and park some messages. Returns whether there was any, and room for it."""
        async with self._reading:
            if not self._has_room():
                self._starved = True
                return False
            if not self._next:
                room = _WAITING - (self._loaded - self.retrying)
                self._next.extend(self._agenda.take(self._now() + _AHEAD, min(_PIECE, room)))
                self._taken.set()
            if not self._next:
                return False
            for message in await self._read(list(self._next)):
                due, position = self._next.popleft()
                if message is None:
                    # It does not keep its file.
                    self.ended(Message(0, due, None, b"", self._store.home_of(position)))
                elif isinstance(message, OSError):
                    self._unread.append((due, position))
                else:
                    self._park(message)
        return True

    async def _read(self, places: list[tuple[int, int]]) -> list[Message | OSError | None]:
        """Read messages; not all of them if they are large. None stands for a damaged one."""
        return await self._loop.run_in_executor(self._reader, self._store.read, places)

    def _follow_clock(self) -> None:
        """When the wall clock was set, let all messages in memory follow it."""
        offset = self._clock() - self._loop.time()
        if abs(offset - self._offset) < _STEP:
            return
        self._offset = offset
        self._turn_early.set()
        for operation in self._purgatory.operations():
            # The next attempt follows the loop's clock.
            if isinstance(operation, WaitingMessage) and not operation.failures:
                operation.reschedule(operation.until - self._clock())

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
        unread, self._unread = self._unread, []
        for due, position in unread:
            self._agenda.add(due, (position,))
            self._changed.set()
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
                self._agenda.add(due, offsets)
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

    async def dead_letters(self) -> AsyncIterator[list[DeadLetter]]:
        """The messages that were set aside, some at a time. Raises OSError."""
        letters = self._store.dead_letters()
        while piece := await self._loop.run_in_executor(self._reader, list, islice(letters, _LETTERS)):
            yield piece

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
