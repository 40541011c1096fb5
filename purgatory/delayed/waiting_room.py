"""The messages that wait in memory, and how much room there is for others."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from purgatory import Purgatory
from purgatory.delayed.message import Location, Message
from purgatory.delayed.waiting_message import Attempt, WaitingMessage

# Messages that are in memory, at most, and bytes of their payloads, after which no more are read.
_MESSAGES: Final = 10_000
_BYTES: Final = 1 << 26
# Messages that wait for another attempt, after which no new ones are read. Each takes some 600 bytes.
_RETRYING: Final = 1_000_000


class WaitingRoom:
    """Messages that wait in a purgatory. Those that were not tried yet have their payloads in memory. Those
    that wait for another attempt have left them on the disk, and are read again for it.

    `due` gets each message at its time. `early` gets those whose time is again more than `ahead` seconds
    away, because the wall clock was set back: they would take the room of others for long. `changed` is
    called when there is something to read again, when there is room again, and when the first message comes.
    """

    def __init__(
        self,
        purgatory: Purgatory,
        clock: Callable[[], float],
        ahead: float,
        due: Callable[[Attempt], None],
        early: Callable[[Message], None],
        changed: Callable[[], None],
    ) -> None:
        self._purgatory = purgatory
        self._clock = clock
        self._ahead = ahead
        self._due = due
        self._early = early
        self._changed = changed
        # Messages in memory, those that are being delivered among them, and bytes of their payloads.
        self.loaded = 0
        self._bytes = 0
        # How many wait for another attempt to deliver them.
        self.retrying = 0
        # By token, those that are to be read again now.
        self._again: dict[int, WaitingMessage] = {}
        # Whether messages wait for room.
        self._starved = False

    @property
    def room(self) -> int:
        """How many messages may be read."""
        return max(0, _MESSAGES - self.loaded) if self._bytes < _BYTES else 0

    @property
    def is_open(self) -> bool:
        """Whether there is room for messages that were not tried yet."""
        return self.room > 0 and self.retrying < _RETRYING

    def starve(self) -> None:
        """Call `changed` when there is room again."""
        self._starved = True

    # Messages

    def park(self, message: Message) -> None:
        """Take in a message, which waits until it is due."""
        self._enter(message)
        self._wait(message, 0, message.due / 1000)

    def try_again(self, attempt: Attempt) -> None:
        """Take in a message that was read again, and is due."""
        self._enter(attempt.message)
        self._due(attempt)

    def left(self, message: Message) -> None:
        """Make room for another message."""
        self.loaded -= 1
        self._bytes -= len(message.payload)
        # Not for each message: one read brings many.
        if self._starved and self.loaded <= _MESSAGES // 2:
            self._starved = False
            self._changed()

    def wait_again(self, location: Location, failures: int, seconds: float) -> None:
        """Let a message wait on the disk until it is read again."""
        if failures:
            self.retrying += 1
        self._wait(location, failures, self._clock() + seconds)

    def take_again(self, limit: int) -> list[tuple[Location, int]]:
        """Take out messages that are to be read again, each with the number of its failures."""
        taken = [self._again.pop(token) for token in list(islice(self._again, limit))]
        self.retrying -= sum(operation.failures > 0 for operation in taken)
        return [(operation.location, operation.failures) for operation in taken]

    def withdraw(self, token: int) -> WaitingMessage | None:
        """Take out the message with this token, if it waits here."""
        operation = self._again.pop(token, None)
        if operation is None:
            for cancelled in self._purgatory.cancel_for_key(token):
                if isinstance(cancelled, WaitingMessage):
                    operation = cancelled
        if operation is not None:
            if operation.failures:
                self.retrying -= 1
            if isinstance(operation.message, Message):
                self.left(operation.message)
        return operation

    def follow_clock(self) -> None:
        """Let all messages that wait for their due time follow the wall clock, which was set."""
        for operation in self._purgatory.operations():
            # The next attempt follows the loop's clock.
            if isinstance(operation, WaitingMessage) and isinstance(operation.message, Message):
                seconds = operation.until - self._clock()
                if seconds <= self._ahead:
                    operation.reschedule(seconds)
                else:
                    operation.cancel()
                    self._early(operation.message)

    def _enter(self, message: Message) -> None:
        if not self.loaded:
            # While there is a message in memory, somebody looks at the wall clock.
            self._changed()
        self.loaded += 1
        self._bytes += len(message.payload)

    def _wait(self, message: Message | Location, failures: int, until: float) -> None:
        operation = WaitingMessage(message, failures, until, until - self._clock(), self._expired)
        self._purgatory.try_complete_else_watch(operation, (message.token,))

    def _expired(self, operation: WaitingMessage) -> None:
        message = operation.message
        if isinstance(message, Location):
            self._again[message.token] = operation
            self._changed()
        elif operation.until - self._clock() > self._ahead:
            self._early(message)
        elif self._clock() < operation.until:
            # A small step back; or the two clocks do not go at the same speed.
            self._wait(message, 0, operation.until)
        else:
            self._due(Attempt(message, 0, operation.until))
