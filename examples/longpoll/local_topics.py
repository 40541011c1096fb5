"""The topics of a service with one process, in its memory."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection

from examples.longpoll.limits import Limits
from examples.longpoll.names import Names
from examples.longpoll.topic_log import TopicLog
from examples.longpoll.topics import TOPICS_KEY, too_many_topics, topic_key
from purgatory import Purgatory


class LocalTopics:
    """`Topics` in memory. After a restart of the service all logs are empty and have another `id`."""

    def __init__(self, polls: Purgatory, limits: Limits) -> None:
        self.id = secrets.token_hex(4)
        self.names = Names.of(())
        self._polls = polls
        self._limits = limits
        self._logs: dict[str, TopicLog] = {}
        # When each topic was used, those that have been unused for longest first.
        self._used: dict[str, float] = {}
        # Where a new log begins: behind the end of each log that was dropped.
        self._start = 0

    def log(self, topic: str) -> TopicLog:
        log = self._logs.get(topic)
        if log is None:
            return TopicLog(topic, self.id, self._limits, self._start)
        self._use(topic)
        return log

    async def load(self, topics: Collection[str]) -> None: ...

    async def load_names(self) -> None: ...

    async def append(self, topic: str, record: bytes) -> int:
        log = self._logs.get(topic) or self._create(topic)
        self._use(topic)
        offset = log.append(record)
        # Thousands of polls may watch one topic: `sweep` lets the loop serve others in between.
        await self._polls.sweep(topic_key(topic))
        return offset

    def _use(self, topic: str) -> None:
        self._used.pop(topic, None)
        self._used[topic] = asyncio.get_running_loop().time()

    def _create(self, topic: str) -> TopicLog:
        if len(self._logs) >= self._limits.topics:
            self._drop_one()
        log = self._logs[topic] = TopicLog(topic, self.id, self._limits, self._start)
        self.names = Names.of(self._logs)
        self._polls.check_and_complete(TOPICS_KEY)
        return log

    def _drop_one(self) -> None:
        """Drop the topic that has been unused for longest. Raises TooManyTopics if all of them are used."""
        latest = asyncio.get_running_loop().time() - self._limits.topic_timeout
        for topic, used in self._used.items():
            if used > latest:
                break
            if not self._polls.count_watching(topic_key(topic), 1):
                self._start = max(self._start, self._logs.pop(topic).end + 1)
                del self._used[topic]
                return
        raise too_many_topics(self._limits.topics)
