"""Clusters for tests with real brokers and real clients, and the mark of these tests."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from examples.broker.cluster import ClusterConfig
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.group.coordinator import GroupConfig
from examples.broker.node.node import BrokerConfig
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.clients.python_clients import CLIENTS, Client
from tests.examples.broker.live.groups.live_group import LiveGroup
from tests.examples.broker.live.live_cluster import LiveCluster

# Kafka's defaults, except for shorter intervals. A broker that a busy machine holds up for a while stays live
# and in sync. Where another one has to take its place, the test says so (``LiveCluster.fence``).
CONFIG = ClusterConfig(
    brokers=3,
    port=0,
    defaults=ClusterDefaults(
        num_partitions=3,
        default_replication_factor=3,
        offsets_topic_num_partitions=5,
        broker_session_timeout=60.0,
    ),
    broker=BrokerConfig(
        replica_lag_time_max=60.0,
        broker_heartbeat_interval=0.2,
        log_retention_check_interval=0.2,
        groups=GroupConfig(group_initial_rebalance_delay=0.1, group_min_session_timeout=0.5),
    ),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark every test of this directory as slow."""
    directory = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(directory):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[LiveCluster]:
    """A cluster for all tests of a module, which must not change its brokers."""
    with LiveCluster.running(CONFIG) as cluster:
        yield cluster


@pytest.fixture
def cluster() -> Iterator[LiveCluster]:
    """A cluster for one test, which may stop, kill and pause its brokers."""
    with LiveCluster.running(CONFIG) as cluster:
        yield cluster


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Runs the test with each Python client in turn."""
    client: Client = request.param
    return client


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """The name of the test, as a topic may have it."""
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)


@pytest.fixture
def topic(shared_cluster: LiveCluster, name: str) -> LiveTopic:
    """A new topic."""
    return LiveTopic.create(shared_cluster, name)


@pytest.fixture
def group(shared_cluster: LiveCluster, client: Client, name: str) -> Iterator[LiveGroup]:
    """A group without members. After the test its members leave, and no operation may stay pending."""
    with LiveGroup.running(shared_cluster, client, name) as group:
        yield group
