"""Brokers for tests of code that uses Kafka, on free ports in the test's own process.

A ``ThreadedCluster`` serves all kinds of tests: those that block, and those with an event loop of any kind.
For pytest there are the fixtures of ``examples.broker.pytest_plugin``. ``running_cluster`` is for a test that
shares its event loop with the brokers.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final, Self, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from examples.broker.cluster import Cluster, ClusterConfig
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.group.coordinator import GroupConfig
from examples.broker.node.node import BrokerConfig
from examples.broker.waits.topics import DelayedTopics, park_topics

T = TypeVar("T")

TEST_CONFIG: Final = ClusterConfig(
    brokers=3,
    port=0,
    defaults=ClusterDefaults(
        default_replication_factor=3, offsets_topic_num_partitions=3, broker_session_timeout=1.0
    ),
    broker=BrokerConfig(
        replica_lag_time_max=1.0,
        broker_heartbeat_interval=0.2,
        groups=GroupConfig(group_initial_rebalance_delay=0.0, group_min_session_timeout=0.5),
    ),
)
"""Three brokers at any free ports. Times are shorter than Kafka's: a killed broker is fenced in a second."""

# Seconds. A broker that is started or resumed is live within a heartbeat's interval.
RESET_TIMEOUT: Final = 10.0


def running_cluster(config: ClusterConfig = TEST_CONFIG) -> AbstractAsyncContextManager[Cluster]:
    """Return a context manager that runs a cluster on the event loop of the ``async with`` block.

    The block must begin and end in one task, so it cannot be in a fixture of pytest-asyncio.
    """
    return Cluster.running(config)


async def reset(cluster: Cluster) -> None:
    """Make a cluster as good as new: end all faults, and delete all topics, records and groups.

    The topics are gone from the metadata of every broker when it returns. Close the clients first, since a
    client that runs on may create its topics again. Raises TimeoutError when it takes 10 seconds.
    """
    controller = cluster.controller
    with anyio.fail_after(RESET_TIMEOUT):
        for broker_id in cluster.broker_ids:
            if broker_id in cluster.nodes:
                cluster.resume(broker_id)
            else:
                await cluster.start(broker_id)
        while len(controller.image.live_brokers) < len(cluster.broker_ids):
            await controller.image_after(controller.image.version)
        deleted = [controller.delete_topic(name) for name in [*controller.image.topics]]
        if deleted:
            for node in cluster.nodes.values():
                forgotten = DelayedTopics(math.inf, deleted, node.admin.cache.lacks)
                await park_topics(node.admin.topic_purgatory, forgotten)


class ThreadedCluster:
    """A cluster in a thread with an event loop of its own. Call its methods from any other thread.

    They do what those of ``Cluster`` do, and block until it is done.
    """

    def __init__(self, portal: BlockingPortal, cluster: Cluster) -> None:
        self._portal = portal
        self._cluster = cluster

    @classmethod
    @contextmanager
    def running(cls, config: ClusterConfig = TEST_CONFIG) -> Iterator[Self]:
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(Cluster.running(config)) as cluster,
        ):
            yield cls(portal, cluster)

    def __repr__(self) -> str:
        return f"<ThreadedCluster of {self._cluster!r}>"

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the running brokers, in the form that clients take."""
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

    def cut_off(self, broker_id: int) -> None:
        self._portal.call(self._cluster.cut_off, broker_id)

    def slow_down(self, broker_id: int, seconds: float) -> None:
        self._portal.call(self._cluster.slow_down, broker_id, seconds)

    def resume(self, broker_id: int) -> None:
        self._portal.call(self._cluster.resume, broker_id)

    def pause_follower(self, broker_id: int) -> None:
        self._portal.call(self._cluster.pause_follower, broker_id)

    def resume_follower(self, broker_id: int) -> None:
        self._portal.call(self._cluster.resume_follower, broker_id)

    def reset(self) -> None:
        """See ``reset``, the function."""
        self._portal.call(reset, self._cluster)
