"""Clusters for tests with real clients."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from examples.broker.cluster import ClusterConfig
from examples.broker.controller.cluster_defaults import ClusterDefaults
from examples.broker.group.config import GroupConfig
from examples.broker.node.node import BrokerConfig
from tests.examples.broker.live.live_cluster import LiveCluster

# As in Kafka but for the times, which are short enough for tests.
CONFIG = ClusterConfig(
    brokers=3,
    port=0,
    defaults=ClusterDefaults(
        num_partitions=3,
        default_replication_factor=3,
        offsets_topic_num_partitions=5,
        broker_session_timeout=1.0,
    ),
    broker=BrokerConfig(
        replica_lag_time_max=1.0,
        broker_heartbeat_interval=0.2,
        groups=GroupConfig(group_initial_rebalance_delay=0.1, group_min_session_timeout=0.5),
    ),
)


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[LiveCluster]:
    """One for all tests of a module that leave it as they found it."""
    with LiveCluster.running(CONFIG) as cluster:
        yield cluster


@pytest.fixture
def cluster() -> Iterator[LiveCluster]:
    """One of a test's own, to do harm to."""
    with LiveCluster.running(CONFIG) as cluster:
        yield cluster


@pytest.fixture
def steady_cluster() -> Iterator[LiveCluster]:
    """One of a test's own whose in-sync replicas do not change for a while, whatever happens."""
    steady = replace(
        CONFIG,
        defaults=replace(CONFIG.defaults, broker_session_timeout=60.0),
        broker=replace(CONFIG.broker, replica_lag_time_max=60.0),
    )
    with LiveCluster.running(steady) as cluster:
        yield cluster
