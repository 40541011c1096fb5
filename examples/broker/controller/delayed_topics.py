"""The delayed operation of a creation or deletion of topics or partitions, which waits for this broker."""

from collections.abc import Iterable

from examples.broker.controller.metadata_cache import MetadataCache
from examples.broker.metadata import TopicImage
from purgatory import DelayedOperation


class DelayedTopics(DelayedOperation[frozenset[str]]):
    """Completes once the broker's metadata cache has the created topics and not the deleted ones.

    A topic that was given more partitions counts as created.

    A client that gets the response therefore finds the topic on this broker
    (kafka.server.DelayedCreatePartitions). The result has the names of the topics for which this does not
    hold at the timeout.
    """

    __slots__ = ("_cache", "_created", "_deleted")

    def __init__(
        self,
        timeout: float,
        cache: MetadataCache,
        *,
        created: Iterable[TopicImage] = (),
        deleted: Iterable[TopicImage] = (),
    ) -> None:
        super().__init__(timeout)
        self._cache = cache
        self._created = list(created)
        self._deleted = list(deleted)

    def try_complete(self) -> bool:
        self._created = [topic for topic in self._created if not self._cache.shows(topic)]
        self._deleted = [topic for topic in self._deleted if self._cache.holds(topic)]
        return not self._created and not self._deleted and self.force_complete()

    def on_complete(self) -> frozenset[str]:
        return frozenset(topic.name for topic in (*self._created, *self._deleted))
