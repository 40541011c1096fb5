"""The topics of a service, and the operation that waits for more records of one topic."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from examples.longpoll.names import Names
from examples.longpoll.topic_log import Page, TopicLog
from purgatory import DelayedOperation
from purgatory.web import Position

TOPICS_KEY: Final = "topics"
"""The key, in the purgatory of polls, of the operations that wait for a change of the list of topics."""


class TooManyTopics(Exception):
    """Raised when a record would create more topics than the limit allows."""


def too_many_topics(limit: int) -> TooManyTopics:
    return TooManyTopics(f"there are {limit} topics already, which is the limit, and all of them are used")


class Topics(Protocol):
    """The log of every topic. The first record creates a topic; until then its log is empty."""

    names: Names
    """The names of all topics, as far as this process knows them."""

    def log(self, topic: str) -> TopicLog:
        """Return the log of `topic`, as far as this process knows it. Asking does not create the topic."""
        raise NotImplementedError

    async def load(self, topics: Collection[str]) -> None:
        """Bring all records of `topics` into this process."""
        raise NotImplementedError

    async def load_names(self) -> None:
        """Bring the names of all topics into this process."""
        raise NotImplementedError

    async def append(self, topic: str, record: bytes) -> int:
        """Append `record`, complete the reads that waited for it, and return its offset.

        Raises TooManyTopics when there are as many topics as the limit allows, and all of them are used.
        """
        raise NotImplementedError


class DelayedRead(DelayedOperation[Page | None]):
    """Waits until the log of `topic` reaches the offset `end`, and returns the records from `position` on.

    Returns None if the record at `position` has been dropped in the meantime, or the log has gone.
    """

    def __init__(self, topics: Topics, topic: str, position: Position, end: int, wait: float) -> None:
        super().__init__(wait)
        self.topics = topics
        self.topic = topic
        self.position = position
        self.end = end

    def try_complete(self) -> bool:
        log = self.topics.log(self.topic)
        return (log.end >= self.end or not log.has(self.position)) and self.force_complete()

    def on_complete(self) -> Page | None:
        log = self.topics.log(self.topic)
        return log.read(self.position.offset) if log.has(self.position) else None


def topic_key(topic: str) -> str:
    """The topic's key in the purgatory of polls. The prefix keeps it apart from the other keys."""
    return f"topics/{topic}"


def topic_of(key: str) -> str:
    return key.removeprefix("topics/")
