"""A topic of a running cluster, and the state of its replicas."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from examples.broker.cluster import Cluster
from examples.broker.controller.new_topic import NewTopic
from examples.broker.metadata import PartitionState
from examples.broker.replication.partition import Partition
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.live.live_cluster import LiveCluster

T = TypeVar("T")

# The low byte of a batch's attributes, and its bits for the compression codec.
_ATTRIBUTES_AT: Final = 22
_CODEC: Final = 0b111


@dataclass(frozen=True, slots=True)
class LiveTopic:
    """A topic with one partition on three brokers."""

    cluster: LiveCluster
    name: str

    @classmethod
    def create(cls, cluster: LiveCluster, name: str) -> Self:
        """Create the topic, and wait until every broker knows it."""
        cluster.look(lambda running: running.controller.create(NewTopic(name, 1, 3)))
        cluster.until(
            lambda running: all(name in node.admin.cache.image.topics for node in running.nodes.values())
        )
        return cls(cluster, name)

    @property
    def state(self) -> PartitionState:
        return self.cluster.look(self._state)

    @property
    def followers(self) -> list[int]:
        state = self.state
        return [replica for replica in state.replicas if replica != state.leader]

    def led(self, what: Callable[[Partition], T]) -> T:
        """Call a function with the leader's partition, on the cluster's thread."""

        def look(cluster: Cluster) -> T:
            replicas = cluster.nodes[self._state(cluster).leader].replicas
            return what(replicas.partitions.leader(TopicPartition(self.name, 0)))

        return self.cluster.look(look)

    def batches(self) -> list[RecordBatch]:
        return self.led(lambda partition: list(partition.log.batches()))

    def codecs(self) -> list[int]:
        """Return the codec number of each batch."""
        return [batch.data[_ATTRIBUTES_AT] & _CODEC for batch in self.batches()]

    def high_watermark(self) -> int:
        return self.led(lambda partition: partition.high_watermark)

    def log_start_offsets(self) -> dict[int, int]:
        """Return the log start offset of each replica, by broker."""
        name = TopicPartition(self.name, 0)
        return self.cluster.look(
            lambda cluster: {
                broker_id: replica.log.log_start_offset
                for broker_id, node in cluster.nodes.items()
                if (replica := node.replicas.partitions.get(name)) is not None
            }
        )

    def _state(self, cluster: Cluster) -> PartitionState:
        state = cluster.controller.image.partition(TopicPartition(self.name, 0))
        assert state is not None
        return state
