"""What each kind of server can do to a relay."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol, runtime_checkable

from purgatory.relay import Transport
from tests.relay.live.black_hole import Hole


class FaultyServer(Protocol):
    """A server, or a cluster of which each fault harms another server."""

    def transport(self) -> Transport: ...

    def kill(self) -> None: ...

    def start(self) -> None:
        """Go on after `kill`."""

    def frozen(self) -> AbstractContextManager[None]:
        """Connections stay open, and nothing answers."""

    async def cut(self) -> int:
        """End the connections that have subscriptions. Returns how many there were."""

    def hole(self) -> AbstractAsyncContextManager[Hole]:
        """A proxy that can swallow everything."""


@runtime_checkable
class Overflowing(FaultyServer, Protocol):
    """A server that drops what a process does not read in time."""

    def overflow(self, times: int) -> None:
        """Send this process more than the server keeps, before anything else can run here."""
