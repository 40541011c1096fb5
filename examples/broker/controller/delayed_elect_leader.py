"""The delayed operation of an election, which waits until this broker knows the new leaders."""

from collections.abc import Mapping

from examples.broker.controller.metadata_cache import MetadataCache
from examples.broker.metadata import PartitionState
from examples.broker.topic_partition import TopicPartition
from purgatory import DelayedOperation


class DelayedElectLeader(DelayedOperation[frozenset[TopicPartition]]):
    """Completes once the broker's metadata cache shows every election (kafka.server.DelayedElectLeader).

    The cache shows an election when it has that leader epoch or a later one, since the leader may have failed
    again. The result has the partitions whose election the cache does not show at the timeout.
    """

    __slots__ = ("_cache", "_elected")

    def __init__(
        self, timeout: float, cache: MetadataCache, elected: Mapping[TopicPartition, PartitionState]
    ) -> None:
        super().__init__(timeout)
        self._cache = cache
        self._elected = elected

    def try_complete(self) -> bool:
        self._elected = {
            entry: state for entry, state in self._elected.items() if not self._shows(entry, state)
        }
        return not self._elected and self.force_complete()

    def on_complete(self) -> frozenset[TopicPartition]:
        return frozenset(self._elected)

    def _shows(self, topic_partition: TopicPartition, elected: PartitionState) -> bool:
        known = self._cache.image.partition(topic_partition)
        return known is not None and known.leader_epoch >= elected.leader_epoch
