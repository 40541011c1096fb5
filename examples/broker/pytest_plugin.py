"""Brokers for pytest: ``pytest_plugins = ["examples.broker.pytest_plugin"]`` in your conftest.py.

The brokers start once, with the first test that requests ``brokers``. After each test they are reset, so each
begins with no topics, no groups and no faults.
"""

from collections.abc import Iterator

import pytest

from examples.broker.cluster import ClusterConfig
from examples.broker.testing import TEST_CONFIG, ThreadedCluster


@pytest.fixture(scope="session")
def broker_config() -> ClusterConfig:
    """The size and the settings of the cluster. Override it in your conftest.py."""
    return TEST_CONFIG


@pytest.fixture(scope="session")
def broker_cluster(broker_config: ClusterConfig) -> Iterator[ThreadedCluster]:
    """The cluster of all tests, for your own fixtures of a wider scope. Tests request ``brokers``."""
    with ThreadedCluster.running(broker_config) as cluster:
        yield cluster


@pytest.fixture
def brokers(broker_cluster: ThreadedCluster) -> Iterator[ThreadedCluster]:
    """The cluster, which is reset after the test."""
    yield broker_cluster
    broker_cluster.reset()
