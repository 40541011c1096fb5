"""The messages that wait in memory, as operations of a purgatory, and how much room there is for others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from purgatory import DelayedOperation, Purgatory
from purgatory.delayed import schedule
from purgatory.delayed.message import Location, Message

# The most messages in memory, and bytes of their payloads, after which no more messages are read.
_MESSAGES: Final = 10_000
_BYTES: Final = 1 << 26
# While so many messages wait for another attempt, no new ones are read. Each takes some 600 bytes.
_RETRYING: Final = 1_000_000


class WaitingMessage(DelayedOperation[None]):
    """Expires when a message is due, or is to be read again."""

    __slots__ = ("_expired", "message")

    def __init__(
        self, message: Message | Location, timeout: float, expired: Callable[[Message | Location], None]
    ) -> None:
        super().__init__(timeout)
        self.message = message
        self._expired = expired

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        """Nothing: `on_expiration` follows."""

    def on_expiration(self) -> None:
        self._expired(self.message)


@dataclass(eq=False, repr=False)
class WaitingRoom:
    """Messages that wait in a purgatory. While a message waits for another attempt, its payload is on the
    disk only. The other payloads are in memory.

    `due` gets each message at its time, and since when it is due, in seconds since the epoch. `early` gets
    where a message is whose time is far away again, because the wall clock was set back: it would take the
    room of others for long. `changed` is called when there is something to read again, when there is room
    again, and when the first message comes.
    """

    purgatory: Purgatory
    clock: Callable[[], float]
    due: Callable[[Message, float], None]
    early: Callable[[Location], None]
    changed: Callable[[], None]

    def __post_init__(self) -> None:
        # Messages in memory, with the messages that are being delivered, and bytes of their payloads.
        self.loaded = 0
        self._bytes = 0
        # How many wait for another attempt to deliver them.
        self.retrying = 0
        # By token, the messages that are to be read again now.
        self._again: dict[int, Location] = {}
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
        """Take in a message, which waits until it is due. Another attempt to deliver it is due at once."""
        if not self.loaded:
            # While there is a message in memory, somebody looks at the wall clock.
            self.changed()
        self.loaded += 1
        self._bytes += len(message.payload)
        if message.failures:
            self.due(message, self.clock())
        else:
            self._wait(message, message.due / 1000 - self.clock())

    def put_off(self, message: Message) -> bool:
        """Let a message wait again if it is early. False if it is due."""
        seconds = message.due / 1000 - self.clock()
        # A message that was tried once has been due. Its next attempt follows the loop's clock.
        if message.failures or seconds <= 0:
            return False
        if seconds <= schedule.AHEAD / 1000:
            # The wall clock made a small step back, or goes more slowly than the loop's clock.
            self._wait(message, seconds)
        else:
            self.left(message)
            self.early(message.location)
        return True

    def left(self, message: Message) -> None:
        self.loaded -= 1
        self._bytes -= len(message.payload)
        # Not for each message: one read brings many.
        if self.starved and self.loaded <= _MESSAGES // 2:
            self.starved = False
            self.changed()

    def fail(self, message: Message, seconds: float) -> None:
        """Let a message whose delivery has failed wait for another attempt."""
        self.left(message)
        self.wait_again(message._replace(failures=message.failures + 1).location, seconds)

    def wait_again(self, location: Location, seconds: float) -> None:
        """Let a message wait on the disk until it is read again."""
        if location.failures:
            self.retrying += 1
        self._wait(location, seconds)

    def take_again(self, limit: int) -> list[Location]:
        """Take out messages that are to be read again."""
        taken = [self._again.pop(token) for token in list(islice(self._again, limit))]
        self.retrying -= sum(location.failures > 0 for location in taken)
        return taken

    def withdraw(self, token: int) -> tuple[Location, float] | None:
        """Take out the message with this token, and the seconds that it was to wait; None without one."""
        message: Message | Location | None = self._again.pop(token, None)
        deadline = now = asyncio.get_running_loop().time()
        for cancelled in self.purgatory.cancel_for_key(token):
            if isinstance(cancelled, WaitingMessage):
                message, deadline = cancelled.message, cancelled.deadline or now
        if message is None:
            return None
        if message.failures:
            self.retrying -= 1
        if isinstance(message, Message):
            self.left(message)
            message = message.location
        return message, deadline - now

    def follow_clock(self) -> None:
        """The wall clock was set. Messages that wait for their due time follow it."""
        for operation in self.purgatory.operations():
            if isinstance(operation, WaitingMessage) and isinstance(operation.message, Message):
                seconds = operation.message.due / 1000 - self.clock()
                if seconds <= schedule.AHEAD / 1000:
                    operation.reschedule(seconds)
                else:
                    operation.cancel()
                    self._expired(operation.message)

    def _wait(self, message: Message | Location, seconds: float) -> None:
        operation = WaitingMessage(message, seconds, self._expired)
        self.purgatory.try_complete_else_watch(operation, (message.token,))

    def _expired(self, message: Message | Location) -> None:
        if isinstance(message, Location):
            self._again[message.token] = message
            self.changed()
        elif not self.put_off(message):
            self.due(message, message.due / 1000)
