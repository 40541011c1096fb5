"""The topics of a service with several processes: each has a copy of those that its clients read."""

from __future__ import annotations

from collections.abc import Collection

import anyio

from examples.longpoll.limits import Limits
from examples.longpoll.store import Excerpt, Place, Store, turn
from examples.longpoll.topic_log import TopicLog
from examples.longpoll.topics import topic_key
from purgatory.relay import Relay


class SharedTopics:
    """`Topics` in a store. The relay calls `load` when there may be more records of a topic that is read.

    A copy drops its oldest records by the same limits as the store, and so has the same offsets.
    """

    def __init__(self, store: Store, relay: Relay, limits: Limits) -> None:
        self._store = store
        self._relay = relay
        self._limits = limits
        self._id = ""
        self._logs: dict[str, TopicLog] = {}
        self._reading = anyio.Lock()

    def log(self, topic: str) -> TopicLog:
        return self._logs.get(topic) or TopicLog(topic, self._id, self._limits)

    async def latest(self, topic: str) -> TopicLog:
        await self.load([topic])
        return self.log(topic)

    async def append(self, topic: str, record: bytes) -> int:
        offset = await self._store.append(topic, record)
        if not self._store.signals:
            self._relay.signal(topic_key(topic))
        return offset

    async def load(self, topics: Collection[str]) -> None:
        """Bring what is missing of `topics` here. Raises StoreUnavailable."""
        async with turn(self._reading):
            logs = map(self.log, topics)
            for excerpt in await self._store.read({log.name: Place(log.id, log.end) for log in logs}):
                self._take(excerpt)

    def _take(self, excerpt: Excerpt) -> None:
        self._id = excerpt.log
        log = self._logs.pop(excerpt.topic, None)
        if log is None or (log.id, log.end) != (excerpt.log, excerpt.offset):
            log = TopicLog(excerpt.topic, excerpt.log, self._limits, excerpt.offset)
        for record in excerpt.records:
            log.append(record)
        if log.end:
            self._logs[log.name] = log
        if len(self._logs) > self._limits.topics:
            # Only a store that was emptied can have had so many. The first one was loaded longest ago.
            del self._logs[next(iter(self._logs))]
