"""The topics of a service, and the operation that waits for more records of one topic."""

from __future__ import annotations

from typing import Protocol

from examples.longpoll.topic_log import Page, TopicLog
from purgatory import DelayedOperation


class TooManyTopics(Exception):
    """Raised when a record would create more topics than the limit allows."""


def too_many_topics(limit: int) -> TooManyTopics:
    return TooManyTopics(f"there are {limit} topics already, which is the limit")


class Topics(Protocol):
    """The log of every topic. The first record creates a topic; until then its log is empty."""

    def log(self, topic: str) -> TopicLog:
        """Return the log of `topic`, as far as this process knows it. Asking does not create the topic."""
        raise NotImplementedError

    async def latest(self, topic: str) -> TopicLog:
        """Return the log of `topic` with all its records."""
        raise NotImplementedError

    async def append(self, topic: str, record: bytes) -> int:
        """Append `record`, complete the reads that waited for it, and return its offset.

        Raises TooManyTopics.
        """
        raise NotImplementedError


class DelayedRead(DelayedOperation[Page | None]):
    """Waits until the log of `topic` reaches the offset `end`, and returns the records from `offset` on.

    Returns None if the record at `offset` has been dropped in the meantime, or the log `id` has gone.
    """

    def __init__(self, topics: Topics, topic: str, id: str, offset: int, end: int, wait: float) -> None:
        super().__init__(wait)
        self.topics = topics
        self.topic = topic
        self.id = id
        self.offset = offset
        self.end = end

    def try_complete(self) -> bool:
        log = self.topics.log(self.topic)
        return (log.end >= self.end or self._gone(log)) and self.force_complete()

    def on_complete(self) -> Page | None:
        log = self.topics.log(self.topic)
        return None if self._gone(log) else log.read(self.offset)

    def _gone(self, log: TopicLog) -> bool:
        return log.id != self.id or not log.start <= self.offset <= log.end


def topic_key(topic: str) -> str:
    """The topic's key in the purgatory of polls. The prefix keeps it apart from the key of presence."""
    return f"topics/{topic}"


def topic_of(key: str) -> str:
    return key.removeprefix("topics/")
