"""A creation or a deletion waits until this broker knows of it."""

from collections.abc import Callable, Collection

from examples.broker.metadata import TopicImage
from examples.broker.waits.parking import park
from purgatory import DelayedOperation, Purgatory


class DelayedTopics(DelayedOperation[frozenset[str]]):
    """Completes once this broker knows of every topic's change (kafka.server.DelayedCreatePartitions).

    ``is_known`` tells whether it does. So a client that has the answer finds a created topic on this broker,
    with all its partitions, and no deleted one. The result has the names of the topics that still wait at the
    timeout.
    """

    __slots__ = ("_is_known", "pending")

    def __init__(
        self, timeout: float, pending: Collection[TopicImage], is_known: Callable[[TopicImage], bool]
    ) -> None:
        super().__init__(timeout)
        self.pending = pending
        self._is_known = is_known

    def try_complete(self) -> bool:
        self.pending = [topic for topic in self.pending if not self._is_known(topic)]
        return not self.pending and self.force_complete()

    def on_complete(self) -> frozenset[str]:
        return frozenset(topic.name for topic in self.pending)


def park_topics(topics: Purgatory, change: DelayedTopics) -> DelayedTopics:
    """Have a change wait for each topic that it changes."""
    return park(topics, change, [topic.name for topic in change.pending])


def check_topics(topics: Purgatory, name: str) -> None:
    """Call it when this broker knows another state of a topic, and when the topic is gone."""
    topics.check_and_complete(name)
