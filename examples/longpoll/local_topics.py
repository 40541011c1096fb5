"""The topics of a service with one process, in its memory."""

from __future__ import annotations

import secrets

from examples.longpoll.limits import Limits
from examples.longpoll.topic_log import TopicLog
from examples.longpoll.topics import too_many_topics, topic_key
from purgatory import Purgatory


class LocalTopics:
    """`Topics` in memory. After a restart of the service all logs are empty and have another `id`."""

    def __init__(self, polls: Purgatory, limits: Limits) -> None:
        self.id = secrets.token_hex(4)
        self._polls = polls
        self._limits = limits
        self._logs: dict[str, TopicLog] = {}

    def log(self, topic: str) -> TopicLog:
        return self._logs.get(topic) or TopicLog(topic, self.id, self._limits)

    async def latest(self, topic: str) -> TopicLog:
        return self.log(topic)

    async def append(self, topic: str, record: bytes) -> int:
        log = self.log(topic)
        if topic not in self._logs:
            if len(self._logs) >= self._limits.topics:
                raise too_many_topics(self._limits.topics)
            self._logs[topic] = log
        offset = log.append(record)
        # Thousands of polls may watch one topic: `sweep` lets the loop serve others in between.
        await self._polls.sweep(topic_key(topic))
        return offset
