"""The topics of a service with several processes: each has a copy of those that its clients read."""

from __future__ import annotations

import secrets
from collections.abc import Collection

import anyio

from examples.longpoll.limits import Limits
from examples.longpoll.names import Names
from examples.longpoll.store import Excerpt, Store, turn
from examples.longpoll.topic_log import NOWHERE, TopicLog
from examples.longpoll.topics import TOPICS_KEY, topic_key
from purgatory.relay import Relay
from purgatory.web import Position


class SharedTopics:
    """`Topics` in a store. The relay calls `load` when there may be more records of a topic that is read.

    A copy drops its oldest records by the same limits as the store, and so has the same offsets.
    """

    def __init__(self, store: Store, relay: Relay, limits: Limits) -> None:
        self.names = Names.of(())
        self._store = store
        self._relay = relay
        self._limits = limits
        # That of no log. The store tells its own with the first records that are read.
        self._id = secrets.token_hex(4)
        # Where the store begins a new log, as far as this process knows.
        self._start = 0
        self._logs: dict[str, TopicLog] = {}
        self._reading = anyio.Lock()

    def log(self, topic: str) -> TopicLog:
        return self._logs.get(topic) or TopicLog(topic, self._id, self._limits, self._start)

    async def append(self, topic: str, record: bytes) -> int:
        offset = await self._store.append(topic, record)
        if not self._store.signals:
            self._relay.signal(topic_key(topic))
        if topic not in self.names.names:
            # Another process may have signalled it already, which this one has not heard of.
            self.names = Names.of((*self.names.names, topic))
            self._relay.signal(TOPICS_KEY)
        return offset

    async def load(self, topics: Collection[str]) -> None:
        """Bring what is missing of `topics` here. Raises StoreUnavailable."""
        async with turn(self._reading):
            positions = {topic: self._position(topic) for topic in topics}
            for excerpt in await self._store.read(positions):
                self._take(excerpt)

    async def load_names(self) -> None:
        """Bring the names of all topics here. Raises StoreUnavailable."""
        async with turn(self._reading):
            self.names = Names.of(await self._store.topics())

    def _position(self, topic: str) -> Position:
        log = self._logs.get(topic)
        return NOWHERE if log is None else Position(log.id, log.end)

    def _take(self, excerpt: Excerpt) -> None:
        self._id = excerpt.log
        log = self._logs.pop(excerpt.topic, None)
        if log is None or (log.id, log.end) != (excerpt.log, excerpt.offset):
            log = TopicLog(excerpt.topic, excerpt.log, self._limits, excerpt.offset)
        for record in excerpt.records:
            log.append(record)
        if log.start == log.end:
            # There is no such topic.
            self._start = log.start
        else:
            self._logs[log.name] = log
        if len(self._logs) > self._limits.topics:
            # Some of them have been dropped from the store. The first one was loaded longest ago.
            del self._logs[next(iter(self._logs))]
