"""The parts of one running service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager

from examples.longpoll.limits import Limits
from examples.longpoll.local_presence import LocalPresence
from examples.longpoll.local_topics import LocalTopics
from examples.longpoll.presence import PRESENCE_KEY, Presence
from examples.longpoll.shared_presence import SharedPresence
from examples.longpoll.shared_topics import SharedTopics
from examples.longpoll.store import Store
from examples.longpoll.topics import TOPICS_KEY, Topics, topic_of
from purgatory import Purgatory
from purgatory.metrics import PurgatoryCollector
from purgatory.relay import Key, Relay
from purgatory.web import close_on_signal


class Service:
    """The topics, the presence, and the purgatories behind them.

    The purgatories are open inside `running`, which can be entered once. With a `store`, other processes may
    serve the same topics and the same presence.
    """

    def __init__(self, limits: Limits, store: Store | None = None) -> None:
        self.limits = limits
        self.polls = Purgatory("polls", max_pending=limits.pending)
        self.sessions = Purgatory("sessions", max_pending=limits.sessions)
        self.connections = Purgatory("connections")
        self.collector = PurgatoryCollector(*self.purgatories)
        self.shared = None if store is None else SharedState(store, self.polls, limits)
        self.topics: Topics
        self.presence: Presence
        if self.shared is None:
            self.topics = LocalTopics(self.polls, limits)
            self.presence = LocalPresence(self.sessions, self.polls, limits)
        else:
            self.topics = self.shared.topics
            self.presence = self.shared.presence

    @property
    def purgatories(self) -> tuple[Purgatory, ...]:
        return self.polls, self.sessions, self.connections

    @property
    def relays(self) -> list[Relay]:
        return [] if self.shared is None else [self.shared.relay]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as parts:
            for purgatory in (self.connections, self.polls, self.sessions):
                await parts.enter_async_context(purgatory)
            if self.shared is not None:
                await parts.enter_async_context(self.shared.store)
                await parts.enter_async_context(self.shared.relay)
            # A signal closes the polls alone. The others are needed until the last answer is sent.
            await parts.enter_async_context(close_on_signal(self.polls))
            yield


class SharedState:
    """What several processes share: the store, and the relay that tells when to look at it."""

    def __init__(self, store: Store, polls: Purgatory, limits: Limits) -> None:
        self.store = store
        # Nobody signals that a session has ended without a farewell, so the anti-entropy has to find it. It
        # also reads the topics that have readers, which keeps them used.
        anti_entropy = min(limits.session_timeout / 3, limits.topic_timeout / 4)
        self.relay = Relay(polls, store.transport(), refresh=self._refresh, anti_entropy=anti_entropy)
        self.topics = SharedTopics(store, self.relay, limits)
        self.presence = SharedPresence(store, self.relay, limits)

    async def _refresh(self, keys: Collection[Key]) -> None:
        if PRESENCE_KEY in keys:
            await self.presence.load()
        if TOPICS_KEY in keys:
            await self.topics.load_names()
        topics = [topic_of(str(key)) for key in keys if key not in (PRESENCE_KEY, TOPICS_KEY)]
        if topics:
            await self.topics.load(topics)
