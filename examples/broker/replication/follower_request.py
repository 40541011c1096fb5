"""What a follower wants of each of its partitions, and what of it has changed."""

from collections.abc import Iterable

from examples.broker.replication.fetch import Fetches, PartitionFetch
from examples.broker.topic_partition import TopicPartition


class FollowerRequest(dict[TopicPartition, PartitionFetch]):
    """A fetch request that changes from one fetch of a follower to the next.

    It notes which partitions changed, so that a fetch in a session costs nothing for the others. A leader
    without sessions takes it for the whole request, which it is.
    """

    def __init__(self, wanted: Fetches | None = None) -> None:
        super().__init__(wanted or {})
        # In the order of the changes.
        self._changed: dict[TopicPartition, None] = dict.fromkeys(self)

    def want(self, topic_partition: TopicPartition, wanted: PartitionFetch) -> None:
        if self.get(topic_partition) != wanted:
            self[topic_partition] = wanted
            self._changed[topic_partition] = None

    def leave_out(self, topic_partition: TopicPartition) -> None:
        if self.pop(topic_partition, None) is not None:
            self._changed[topic_partition] = None

    def move_to_end(self, topic_partition: TopicPartition) -> None:
        """Let the leader read a partition after all others."""
        self[topic_partition] = self.pop(topic_partition)

    def take_changes(self) -> tuple[Fetches, list[TopicPartition]]:
        """Return the partitions that changed since the last call, and those that were left out."""
        taken: Iterable[TopicPartition] = self._changed
        self._changed = {}
        changed = {entry: self[entry] for entry in taken if entry in self}
        return changed, [entry for entry in taken if entry not in self]
