"""A topic with one partition on a running cluster, and the state of its replicas."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from examples.broker.cluster import Cluster
from examples.broker.controller.new_topic import NewTopic
from examples.broker.metadata import PartitionState
from examples.broker.replication.partition import Partition
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory import DelayedOperation
from tests.examples.broker.live.live_cluster import LiveCluster, consumers_fetches

T = TypeVar("T")

# The low byte of a batch's attributes, and its bits for the compression codec.
_ATTRIBUTES_AT: Final = 22
_CODEC: Final = 0b111


@dataclass(frozen=True, slots=True)
class LiveTopic:
    cluster: LiveCluster
    name: str

    @classmethod
    def create(cls, cluster: LiveCluster, name: str, **settings: Any) -> Self:
        """Create the topic on three brokers, unless the settings of NewTopic say otherwise."""
        cluster.create_topics(NewTopic(name, **({"partitions": 1, "replication_factor": 3} | settings)))
        return cls(cluster, name)

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.name, 0)

    @property
    def state(self) -> PartitionState:
        return self.cluster.look(self.state_in)

    @property
    def followers(self) -> list[int]:
        state = self.state
        return [replica for replica in state.replicas if replica != state.leader]

    def led(self, what: Callable[[Partition], T]) -> T:
        """Call a function with the leader's partition, on the cluster's thread."""

        def look(cluster: Cluster) -> T:
            replicas = cluster.nodes[self.state_in(cluster).leader].replicas
            return what(replicas.partitions.leader(self.partition))

        return self.cluster.look(look)

    def on_each(self, what: Callable[[Partition], T]) -> dict[int, T]:
        """Call a function with each broker's replica; return the results by broker."""
        return self.cluster.look(
            lambda cluster: {
                broker_id: what(replica)
                for broker_id, node in cluster.nodes.items()
                if (replica := node.replicas.partitions.get(self.partition)) is not None
            }
        )

    def waiting_consumers(self) -> list[DelayedOperation[Any]]:
        """Return the pending fetches of consumers at the leader."""

        def look(cluster: Cluster) -> list[DelayedOperation[Any]]:
            replicas = cluster.nodes[self.state_in(cluster).leader].replicas
            fetches = consumers_fetches(replicas)
            return [fetch for fetch, partitions in fetches.items() if self.partition in partitions]

        return self.cluster.look(look)

    def batches(self) -> list[RecordBatch]:
        return self.led(lambda partition: list(partition.log.batches()))

    def codecs(self) -> list[int]:
        """Return the codec number of each batch."""
        return [batch.data[_ATTRIBUTES_AT] & _CODEC for batch in self.batches()]

    def high_watermark(self) -> int:
        return self.led(lambda partition: partition.high_watermark)

    def state_in(self, cluster: Cluster) -> PartitionState:
        state = cluster.controller.image.partition(self.partition)
        assert state is not None
        return state
