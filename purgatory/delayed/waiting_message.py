"""A message that waits in memory, as an operation of a purgatory."""

from __future__ import annotations

from collections.abc import Callable

from purgatory.delayed.message import Message
from purgatory.delayed_operation import DelayedOperation


class WaitingMessage(DelayedOperation[None]):
    """Expires when its message is due, or when the next attempt to deliver it is.

    `until` is that time, in seconds since the epoch. `failures` counts the attempts so far.
    """

    __slots__ = ("_expired", "failures", "message", "until")

    def __init__(
        self,
        message: Message,
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

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        """Nothing: `on_expiration` follows."""

    def on_expiration(self) -> None:
        self._expired(self)
