"""The messages that wait in memory, as operations of a purgatory, and how much room there is for others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, NamedTuple, TypeVar

from purgatory import DelayedOperation, Purgatory
from purgatory.delayed import schedule
from purgatory.delayed.message import Location, Message

M = TypeVar("M")

# The most messages in memory, and bytes of their payloads, after which no more messages are read.
_MESSAGES: Final = 10_000
_BYTES: Final = 1 << 26
# While so many messages wait for another attempt, no new ones are read. Each takes some 600 bytes.
_RETRYING: Final = 1_000_000


class Attempt(NamedTuple, Generic[M]):
    """A message, or where to read it; how often its delivery has failed; and the time of the next attempt.

    The time is in seconds since the epoch. Before the first attempt it is the due time of the message.
    """

    message: M
    failures: int = 0
    at: float = 0.0


class WaitingMessage(DelayedOperation[None]):
    """Expires at the time of an attempt: its message is due, or is to be read again."""

    __slots__ = ("_expired", "attempt")

    def __init__(
        self,
        attempt: Attempt[Message] | Attempt[Location],
        timeout: float,
        expired: Callable[[WaitingMessage], None],
    ) -> None:
        super().__init__(timeout)
        self.attempt = attempt
        self._expired = expired

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        """Nothing: `on_expiration` follows."""

    def on_expiration(self) -> None:
        self._expired(self)


@dataclass(eq=False, repr=False)
class WaitingRoom:
    """Messages that wait in a purgatory. While a message waits for another attempt, its payload is on the
    disk only. The other payloads are in memory.

    `due` gets each message at its time. `early` gets a message whose time is far away again, because the wall
    clock was set back: it would take the room of others for long. `changed` is called when there is something
    to read again, when there is room again, and when the first message comes.
    """

    purgatory: Purgatory
    clock: Callable[[], float]
    due: Callable[[Attempt[Message]], None]
    early: Callable[[Message], None]
    changed: Callable[[], None]

    def __post_init__(self) -> None:
        # Messages in memory, with the messages that are being delivered, and bytes of their payloads.
        self.loaded = 0
        self._bytes = 0
        # How many wait for another attempt to deliver them.
        self.retrying = 0
        # By token, the messages that are to be read again now.
        self._again: dict[int, Attempt[Location]] = {}
        # Whether messages wait for room. `changed` is called when there is room again.
        self.starved = False

    @property
    def room(self) -> int:
        """How many messages may be read."""
        return max(0, _MESSAGES - self.loaded) if self._bytes < _BYTES else 0

    @property
    def is_open(self) -> bool:
        """Whether there is room for messages that were not tried yet."""
        return self.room > 0 and self.retrying < _RETRYING

    def park(self, message: Message) -> None:
        """Take in a message, which waits until it is due."""
        self._enter(message)
        self._wait(Attempt(message, 0, message.due / 1000))

    def try_again(self, message: Message, failures: int) -> None:
        """Take in a message that was read again, and is due."""
        self._enter(message)
        self.due(Attempt(message, failures, self.clock()))

    def left(self, message: Message) -> None:
        self.loaded -= 1
        self._bytes -= len(message.payload)
        # Not for each message: one read brings many.
        if self.starved and self.loaded <= _MESSAGES // 2:
            self.starved = False
            self.changed()

    def wait_again(self, location: Location, failures: int, seconds: float) -> None:
        """Let a message wait on the disk until it is read again."""
        if failures:
            self.retrying += 1
        self._wait(Attempt(location, failures, self.clock() + seconds))

    def take_again(self, limit: int) -> list[Attempt[Location]]:
        """Take out messages that are to be read again."""
        taken = [self._again.pop(token) for token in list(islice(self._again, limit))]
        self.retrying -= sum(attempt.failures > 0 for attempt in taken)
        return taken

    def withdraw(self, token: int) -> Attempt[Location] | None:
        """Take out the message with this token; None if it does not wait here."""
        attempt: Attempt[Message] | Attempt[Location] | None = self._again.pop(token, None)
        for cancelled in self.purgatory.cancel_for_key(token):
            if isinstance(cancelled, WaitingMessage):
                attempt = cancelled.attempt
        if attempt is None:
            return None
        message, failures, at = attempt
        if failures:
            self.retrying -= 1
        if isinstance(message, Message):
            self.left(message)
            message = message.location
        return Attempt(message, failures, at)

    def follow_clock(self) -> None:
        """The wall clock was set. Messages that wait for their due time follow it."""
        for operation in self.purgatory.operations():
            if isinstance(operation, WaitingMessage) and isinstance(operation.attempt.message, Message):
                seconds = operation.attempt.at - self.clock()
                if seconds <= schedule.AHEAD / 1000:
                    operation.reschedule(seconds)
                else:
                    operation.cancel()
                    self.early(operation.attempt.message)

    def _enter(self, message: Message) -> None:
        if not self.loaded:
            # While there is a message in memory, somebody looks at the wall clock.
            self.changed()
        self.loaded += 1
        self._bytes += len(message.payload)

    def _wait(self, attempt: Attempt[Message] | Attempt[Location]) -> None:
        operation = WaitingMessage(attempt, attempt.at - self.clock(), self._expired)
        self.purgatory.try_complete_else_watch(operation, (attempt.message.token,))

    def _expired(self, operation: WaitingMessage) -> None:
        message, failures, at = operation.attempt
        seconds = at - self.clock()
        if isinstance(message, Location):
            self._again[message.token] = Attempt(message, failures, at)
            self.changed()
        elif seconds > schedule.AHEAD / 1000:
            self.early(message)
        elif seconds > 0:
            # The wall clock made a small step back, or goes more slowly than the loop's clock.
            self._wait(operation.attempt)
        else:
            self.due(Attempt(message, failures, at))
