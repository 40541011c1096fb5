"""A message that waits in memory, as an operation of a purgatory."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from purgatory.delayed.message import Location, Message
from purgatory.delayed_operation import DelayedOperation


class Attempt(NamedTuple):
    """A message that is to be delivered now, and how often that has failed so far.

    `due` is since when, in seconds since the epoch: the due time of the message, or that of the next attempt.
    """

    message: Message
    failures: int
    due: float


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
    def location(self) -> Location:
        return self.message.location if isinstance(self.message, Message) else self.message

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        """Nothing: `on_expiration` follows."""

    def on_expiration(self) -> None:
        self._expired(self)
