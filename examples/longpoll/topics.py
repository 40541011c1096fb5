"""All topics, and the read that waits for more records in one."""

from __future__ import annotations

import secrets

from examples.longpoll.limits import Limits
from examples.longpoll.topic_log import Page, TopicLog
from purgatory import DelayedOperation, Purgatory


class TooManyTopics(Exception):
    """Raised when a record would begin one topic more than there may be."""


class Topics:
    """The log of every topic. A topic begins with its first record; before that its log is empty.

    They are kept in memory: with the service they start over, under another `id`.
    """

    def __init__(self, polls: Purgatory, limits: Limits) -> None:
        self.id = secrets.token_hex(4)
        self._polls = polls
        self._limits = limits
        self._logs: dict[str, TopicLog] = {}

    def log(self, topic: str) -> TopicLog:
        return self._logs.get(topic) or TopicLog(topic, self.id, self._limits)

    async def append(self, topic: str, record: bytes) -> int:
        """The offset of `record`; everybody who waited for it has been answered, or is about to be."""
        log = self.log(topic)
        if topic not in self._logs:
            if len(self._logs) >= self._limits.topics:
                raise TooManyTopics(f"there are {len(self._logs)} topics already")
            self._logs[topic] = log
        offset = log.append(record)
        # Thousands may wait for one topic, and the loop has others to serve meanwhile.
        await self._polls.sweep(key_of(topic))
        return offset


class DelayedRead(DelayedOperation[Page | None]):
    """Waits until the log of `topic` ends at `end` or later; gives what there is from `offset` on by then.

    None if that has been dropped meanwhile.
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


def key_of(topic: str) -> str:
    """Its key in the purgatory of polls; that of "who is online" is there, too."""
    return f"topics/{topic}"
