"""A running cluster for tests with blocking clients, or clients with their own event loop."""

import time
from collections.abc import Callable
from typing import TypeVar

from examples.broker.cluster import Cluster
from examples.broker.node.node import Node
from examples.broker.testing import ThreadedCluster
from examples.broker.topic_partition import TopicPartition
from purgatory import PurgatoryStatistics

T = TypeVar("T")

PATIENCE = 30.0


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

    def leader_of(self, topic: str, partition: int = 0) -> int:
        state = self.look(
            lambda cluster: cluster.controller.image.partition(TopicPartition(topic, partition))
        )
        assert state is not None, f"there is no partition {topic}-{partition}"
        return state.leader

    def node(self, broker_id: int) -> Node:
        return self._cluster.nodes[broker_id]

    def until(self, condition: Callable[[Cluster], T], *, within: float = PATIENCE) -> T:
        """Wait for a truthy value.

        Raises AssertionError with the pending operations when there is none in time.
        """
        return until(lambda: self.look(condition), within=within, explain=self.pending)


def until(condition: Callable[[], T], *, within: float = PATIENCE, explain: Callable[[], object] = str) -> T:
    """Call ``condition`` until it returns a truthy value, for up to ``within`` seconds."""
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"still {value!r} after {within:g} s; {explain()}"
        time.sleep(0.005)
