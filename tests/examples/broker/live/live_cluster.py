"""A running cluster for tests with blocking clients, or clients with their own event loop."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from examples.broker.cluster import Cluster, ClusterConfig
from examples.broker.node.node import Node
from examples.broker.topic_partition import TopicPartition
from purgatory import PurgatoryStatistics

T = TypeVar("T")

PATIENCE = 30.0


class LiveCluster:
    """A cluster in a thread with its own event loop. Call its methods from any other thread."""

    def __init__(self, portal: BlockingPortal, cluster: Cluster) -> None:
        self._portal = portal
        self._cluster = cluster

    @classmethod
    @contextmanager
    def running(cls, config: ClusterConfig) -> Iterator[Self]:
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(Cluster.running(config)) as cluster,
        ):
            yield cls(portal, cluster)

    @property
    def bootstrap_servers(self) -> str:
        return self.look(lambda cluster: cluster.bootstrap_servers)

    def look(self, what: Callable[[Cluster], T]) -> T:
        """Call a function with the cluster on the cluster's thread."""
        return self._portal.call(what, self._cluster)

    def start(self, broker_id: int) -> None:
        self._portal.call(self._cluster.start, broker_id)

    def stop(self, broker_id: int) -> None:
        self._portal.call(self._cluster.stop, broker_id)

    def kill(self, broker_id: int) -> None:
        self._portal.call(self._cluster.kill, broker_id)

    def pause(self, broker_id: int) -> None:
        self._portal.call(self._cluster.pause, broker_id)

    def resume(self, broker_id: int) -> None:
        self._portal.call(self._cluster.resume, broker_id)

    def pause_follower(self, broker_id: int) -> None:
        self._portal.call(self._cluster.pause_follower, broker_id)

    def resume_follower(self, broker_id: int) -> None:
        self._portal.call(self._cluster.resume_follower, broker_id)

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
