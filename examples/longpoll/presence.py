"""Presence: the people who have sent a heartbeat lately are online."""

from __future__ import annotations

from typing import Final, Protocol

from examples.longpoll.names import Names
from purgatory import DelayedOperation

PRESENCE_KEY: Final = "presence"
"""The key, in the purgatory of polls, of the operations that wait for a change of presence."""


class Presence(Protocol):
    """A session for everybody who is online. Heartbeats renew it; without them it ends."""

    timeout: float
    """Seconds that a session lasts after a heartbeat."""
    now: Names
    """The people who are online, as far as this process knows."""

    async def latest(self) -> Names:
        """The people who are online."""
        raise NotImplementedError

    async def heartbeat(self, name: str) -> None:
        """Make `name` online until `timeout` seconds from now.

        Raises PurgatoryFull when this would open more sessions than the limit allows.
        """
        raise NotImplementedError

    async def leave(self, name: str) -> None:
        """Make `name` offline. Harmless if it is offline already."""
        raise NotImplementedError


class DelayedOnline(DelayedOperation[Names]):
    """Waits until the version of presence is no longer `version`, and returns who is online."""

    def __init__(self, presence: Presence, version: str | None, wait: float) -> None:
        super().__init__(wait)
        self.presence = presence
        self.version = version

    def try_complete(self) -> bool:
        return self.presence.now.version != self.version and self.force_complete()

    def on_complete(self) -> Names:
        return self.presence.now
