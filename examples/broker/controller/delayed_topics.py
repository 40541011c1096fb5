"""The wait for this broker to know which topics there are."""

from collections.abc import Iterable

from examples.broker.controller.metadata_cache import MetadataCache
from examples.broker.metadata import TopicImage
from purgatory import DelayedOperation


class DelayedTopics(DelayedOperation[frozenset[str]]):
    """Complete once the broker's metadata cache has the topics created, and none of those deleted.

    So whoever is told that a topic exists finds it at this broker (kafka.server.DelayedCreatePartitions). The
    result are the names of those for which that does not hold by the timeout.
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
        self._created = [topic for topic in self._created if not self._cache.holds(topic)]
        self._deleted = [topic for topic in self._deleted if self._cache.holds(topic)]
        return not self._created and not self._deleted and self.force_complete()

    def on_complete(self) -> frozenset[str]:
        return frozenset(topic.name for topic in (*self._created, *self._deleted))
