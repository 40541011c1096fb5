"""The messages that wait in memory, as operations of a purgatory, and how much room there is for others."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final, NamedTuple

from purgatory import DelayedOperation, Purgatory
from purgatory.delayed import schedule
from purgatory.delayed.message import Location, Message

# Messages that are in memory, at most, and bytes of their payloads, after which no more are read.
_MESSAGES: Final = 10_000
_BYTES: Final = 1 << 26
# Messages that wait for another attempt, after which no new ones are read. Each takes some 600 bytes.
_RETRYING: Final = 1_000_000


class Attempt(NamedTuple):
    """A message that is to be delivered now, and how often that has failed so far.

    `due` is since when, in seconds since the epoch: the due time of the message, or the time of this attempt.
    """

    message: Message
    failures: int
    due: float


class OnDisk(NamedTuple):
    """A message that is to be read, how often its delivery has failed, and the time of the next attempt."""

    location: Location
    failures: int = 0
    until: float = 0.0


class WaitingMessage(DelayedOperation[None]):
    """Expires when its message is due, or when it is to be read again for another attempt.

    `message` is the message, or where to read it again. `until` is the time of the attempt, in seconds since
    the epoch. `failures` counts the deliveries that have failed so far.
    """

    __slots__ = ("_expired", "failures", "message", "until")

    def __init__(
        self,
        message: Message | Location,
        failures: int,
        until: float,
        timeout: float,
        expired: Callable[[WaitingMessage], None],
    ) -> None:
        super().__init__(timeout)
        self.message = message
        self.failures = failures
        self.until = until
        self._expired = expired

    @property
    def on_disk(self) -> OnDisk:
        location = self.message.location if isinstance(self.message, Message) else self.message
        return OnDisk(location, self.failures, self.until)

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        """Nothing: `on_expiration` follows."""

    def on_expiration(self) -> None:
        self._expired(self)


class WaitingRoom:
    """Messages that wait in a purgatory. Messages that were not tried yet have their payloads in memory.
    Messages that wait for another attempt have left their payloads on the disk, and are read again for it.

    `due` gets each message at its time. `early` gets a message whose time is far away again, because the wall
    clock was set back: it would take the room of others for long. `changed` is called when there is something
    to read again, when there is room again, and when the first message comes.
    """

    def __init__(
        self,
        purgatory: Purgatory,
        clock: Callable[[], float],
        due: Callable[[Attempt], None],
        early: Callable[[Message], None],
        changed: Callable[[], None],
    ) -> None:
        self._purgatory = purgatory
        self._clock = clock
        self._due = due
        self._early = early
        self._changed = changed
        # Messages in memory, with the messages that are being delivered, and bytes of their payloads.
        self.loaded = 0
        self._bytes = 0
        # How many wait for another attempt to deliver them.
        self.retrying = 0
        # By token, the messages that are to be read again now.
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

    def take_again(self, limit: int) -> list[OnDisk]:
        """Take out messages that are to be read again."""
        taken = [self._again.pop(token).on_disk for token in list(islice(self._again, limit))]
        self.retrying -= sum(message.failures > 0 for message in taken)
        return taken

    def withdraw(self, token: int) -> OnDisk | None:
        """Take out the message with this token; None if it does not wait here."""
        operation = self._again.pop(token, None)
        for cancelled in self._purgatory.cancel_for_key(token):
            if isinstance(cancelled, WaitingMessage):
                operation = cancelled
        if operation is None:
            return None
        if operation.failures:
            self.retrying -= 1
        if isinstance(operation.message, Message):
            self.left(operation.message)
        return operation.on_disk

    def follow_clock(self) -> None:
        """Let all messages that wait for their due time follow the wall clock, which was set."""
        for operation in self._purgatory.operations():
            # The next attempt follows the loop's clock.
            if isinstance(operation, WaitingMessage) and isinstance(operation.message, Message):
                seconds = operation.until - self._clock()
                if seconds <= schedule.AHEAD / 1000:
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
        seconds = operation.until - self._clock()
        if isinstance(message, Location):
            self._again[message.token] = operation
            self._changed()
        elif seconds > schedule.AHEAD / 1000:
            self._early(message)
        elif seconds > 0:
            # A small step back; or the two clocks do not go at the same speed.
            self._wait(message, 0, operation.until)
        else:
            self._due(Attempt(message, 0, operation.until))
