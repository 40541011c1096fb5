"""Presence in a service with several processes: each has a copy of who is online."""

from __future__ import annotations

import hashlib

import anyio

from examples.longpoll.limits import Limits
from examples.longpoll.presence import PRESENCE_KEY, Online
from examples.longpoll.store import Store, turn
from purgatory.relay import Relay


class SharedPresence:
    """`Presence` in a store. The relay calls `load` when somebody may have come or gone."""

    def __init__(self, store: Store, relay: Relay, limits: Limits) -> None:
        self.timeout = limits.session_timeout
        self.now = online([])
        self._store = store
        self._relay = relay
        self._reading = anyio.Lock()

    async def latest(self) -> Online:
        await self.load()
        return self.now

    async def heartbeat(self, name: str) -> None:
        if await self._store.heartbeat(name):
            self._relay.signal(PRESENCE_KEY)

    async def leave(self, name: str) -> None:
        if await self._store.leave(name):
            self._relay.signal(PRESENCE_KEY)

    async def load(self) -> None:
        """Bring here who is online. Raises StoreUnavailable."""
        async with turn(self._reading):
            self.now = online(sorted(await self._store.online()))


def online(names: list[str]) -> Online:
    """Those names, with a version that is the same in all processes."""
    return Online(hashlib.sha256("\n".join(names).encode()).hexdigest()[:16], tuple(names))
