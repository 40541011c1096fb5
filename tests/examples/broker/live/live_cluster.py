"""A running cluster for tests with blocking clients, or clients with their own event loop."""

import time
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from examples.broker.cluster import Cluster
from examples.broker.controller.new_topic import NewTopic
from examples.broker.replication.fetch_sessions import FetchSession
from examples.broker.replication.partition import Partition
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.testing import ThreadedCluster
from examples.broker.topic_partition import TopicPartition
from purgatory import DelayedOperation, PurgatoryStatistics

T = TypeVar("T")

# Seconds. A busy machine needs half a minute to start a process.
PATIENCE = 90.0


class LiveCluster(ThreadedCluster):
    """A cluster whose state a test reads, too."""

    def statistics(self) -> dict[int, dict[str, PurgatoryStatistics]]:
        return self.look(Cluster.statistics)

    def pending(self) -> dict[tuple[int, str], int]:
        """Count the pending operations by broker and purgatory, including followers' fetches."""
        return {
            (broker_id, name): counts.pending
            for broker_id, purgatories in self.statistics().items()
            for name, counts in purgatories.items()
            if counts.pending
        }

    def waiting(self, *, apart_from: str = "") -> dict[tuple[int, str], int]:
        """Count the pending operations of clients by broker and purgatory, without the fetches of a topic."""

        def look(cluster: Cluster) -> dict[tuple[int, str], int]:
            waiting = {
                (broker_id, name): counts.pending
                for broker_id, purgatories in cluster.statistics().items()
                for name, counts in purgatories.items()
            }
            for broker_id, node in cluster.nodes.items():
                waiting[broker_id, "fetch"] = sum(
                    {partition.topic for partition in partitions} != {apart_from}
                    for partitions in consumers_fetches(node.replicas).values()
                )
            return {where: count for where, count in waiting.items() if count}

        return self.look(look)

    def create_topics(self, *topics: NewTopic) -> None:
        """Create topics, and wait until every broker knows them."""
        self.look(lambda cluster: [cluster.controller.create(topic) for topic in topics])
        names = {topic.name for topic in topics}
        self.until(
            lambda cluster: all(
                names <= node.admin.cache.image.topics.keys() for node in cluster.nodes.values()
            )
        )

    def fence(self, broker_id: int) -> None:
        """End the session of a broker at once, so that no test depends on its timeout."""
        self.look(lambda cluster: cluster.controller.fence(broker_id))

    def kill(self, broker_id: int) -> None:
        """Kill a broker, and end its session."""
        super().kill(broker_id)
        self.fence(broker_id)

    def pause_followers(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self.pause_follower(broker_id)

    def resume_followers(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self.resume_follower(broker_id)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        state = self.look(
            lambda cluster: cluster.controller.image.partition(TopicPartition(topic, partition))
        )
        assert state is not None, f"there is no partition {topic}-{partition}"
        return state.leader

    def stored_logs(self, topic: str, partition: int) -> dict[int, list[RecordBatch]]:
        """Return the batches of each replica, by broker."""
        return self.look(
            lambda cluster: {
                broker_id: list(replica.log.batches())
                for broker_id, replica in _replicas(cluster, TopicPartition(topic, partition)).items()
            }
        )

    def until_replicated(self, topic: str, partitions: int) -> None:
        """Wait until all replicas have the same end, and know that all of it is committed."""
        self.until(
            lambda cluster: all(
                _is_replicated(cluster, TopicPartition(topic, index)) for index in range(partitions)
            )
        )

    def until(self, condition: Callable[[Cluster], T], *, within: float = PATIENCE) -> T:
        """Wait for a truthy value.

        Raises AssertionError with the pending operations when there is none in time.
        """
        return until(lambda: self.look(condition), within=within, explain=self.pending)


def consumers_fetches(replicas: ReplicaManager) -> dict[DelayedOperation[Any], Collection[Any]]:
    """Return a broker's pending fetches of consumers, with their partitions.

    Some fetches of followers are always pending.
    """
    found: dict[DelayedOperation[Any], Collection[Any]] = {}
    for fetch in replicas.fetch_purgatory.operations():
        session = next((key for key in fetch.keys if isinstance(key, FetchSession)), None)
        if session is None or not session.from_follower:
            found[fetch] = fetch.keys if session is None else session.partitions
    return found


def _replicas(cluster: Cluster, topic_partition: TopicPartition) -> dict[int, Partition]:
    found = {
        broker_id: node.replicas.partitions.get(topic_partition) for broker_id, node in cluster.nodes.items()
    }
    return {broker_id: replica for broker_id, replica in found.items() if replica is not None}


def _is_replicated(cluster: Cluster, topic_partition: TopicPartition) -> bool:
    replicas = _replicas(cluster, topic_partition).values()
    ends = {replica.log.log_end_offset for replica in replicas}
    return len(ends) == 1 and {replica.high_watermark for replica in replicas} == ends


def until(condition: Callable[[], T], *, within: float = PATIENCE, explain: Callable[[], object] = str) -> T:
    """Call ``condition`` until it returns a truthy value, for up to ``within`` seconds."""
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"still {value!r} after {within:g} s; {explain()}"
        time.sleep(0.005)
