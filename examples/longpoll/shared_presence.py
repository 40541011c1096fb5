"""Presence in a service with several processes: each has a copy of who is online."""

from __future__ import annotations

import anyio

from examples.longpoll.limits import Limits
from examples.longpoll.names import Names
from examples.longpoll.presence import PRESENCE_KEY
from examples.longpoll.store import Store, turn
from purgatory.relay import Relay


class SharedPresence:
    """`Presence` in a store. The relay calls `load` when somebody may have come or gone."""

    def __init__(self, store: Store, relay: Relay, limits: Limits) -> None:
        self.timeout = limits.session_timeout
        self.now = Names.of(())
        self._store = store
        self._relay = relay
        self._reading = anyio.Lock()

    async def latest(self) -> Names:
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
            self.now = Names.of(await self._store.online())
