"""All topics, and the operation that waits for more records of one topic."""

from __future__ import annotations

import secrets

from examples.longpoll.limits import Limits
from examples.longpoll.topic_log import Page, TopicLog
from purgatory import DelayedOperation, Purgatory


class TooManyTopics(Exception):
    """Raised when a record would create more topics than the limit allows."""


class Topics:
    """The log of every topic. The first record creates a topic; until then its log is empty.

    Logs are kept in memory. After a restart of the service they are empty and have another `id`.
    """

    def __init__(self, polls: Purgatory, limits: Limits) -> None:
        self.id = secrets.token_hex(4)
        self._polls = polls
        self._limits = limits
        self._logs: dict[str, TopicLog] = {}

    def log(self, topic: str) -> TopicLog:
        """Return the log of `topic`. Asking does not create the topic."""
        return self._logs.get(topic) or TopicLog(topic, self.id, self._limits)

    async def append(self, topic: str, record: bytes) -> int:
        """Append `record`, complete the reads that waited for it, and return its offset.

        Raises TooManyTopics.
        """
        log = self.log(topic)
        if topic not in self._logs:
            if len(self._logs) >= self._limits.topics:
                raise TooManyTopics(f"there are {len(self._logs)} topics already, which is the limit")
            self._logs[topic] = log
        offset = log.append(record)
        # Thousands of polls may watch one topic: `sweep` lets the loop serve others in between.
        await self._polls.sweep(topic_key(topic))
        return offset


class DelayedRead(DelayedOperation[Page | None]):
    """Waits until the log of `topic` reaches the offset `end`, and returns the records from `offset` on.

    Returns None if the record at `offset` has been dropped in the meantime.
    """

    def __init__(self, topics: Topics, topic: str, offset: int, end: int, wait: float) -> None:
        super().__init__(wait)
        self.topics = topics
        self.topic = topic
        self.offset = offset
        self.end = end

    def try_complete(self) -> bool:
        log = self.topics.log(self.topic)
        return (log.end >= self.end or log.start > self.offset) and self.force_complete()

    def on_complete(self) -> Page | None:
        log = self.topics.log(self.topic)
        return log.read(self.offset) if log.start <= self.offset else None


def topic_key(topic: str) -> str:
    """The topic's key in the purgatory of polls. The prefix keeps it apart from the key of presence."""
    return f"topics/{topic}"
