"""The parts of one worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from examples.longpoll.presence import Presence
from examples.longpoll.store import PEOPLE_KEY, Store
from examples.longpoll.topics import Topics
from purgatory import Purgatory
from purgatory.relay import Key, Relay
from purgatory.web import close_on_signal


class Service:
    """The topics and the presence of one worker, and the purgatories in which its clients wait.

    They are open inside `running`, which can be entered once.
    """

    def __init__(self, store: Store) -> None:
        self.polls = Purgatory("polls", max_pending=8_000)
        self.sessions = Purgatory("sessions", max_pending=1_000)
        self.relay = Relay(self.polls, store.transport(), refresh=self._refresh)
        self.topics = Topics(store, self.relay)
        self.presence = Presence(store, self.relay, self.sessions)
        self._store = store

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        # A signal to stop closes the polls alone. The others are needed until the last answer is sent.
        async with self.sessions, self.polls, self._store, self.relay, close_on_signal(self.polls):
            yield

    async def _refresh(self, keys: Collection[Key]) -> None:
        """Bring here what the operations of some keys wait for. The relay checks the keys afterwards."""
        topics = [str(key) for key in keys if key != PEOPLE_KEY]
        if topics:
            await self.topics.load(topics)
        if len(topics) < len(keys):
            await self.presence.load()
