"""A cluster for the delay service, each of whose tests has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.delayed.settings import Settings
from tests.examples.delayed.running import short_times
from tests.kafka.kafka_cluster import KafkaCluster


@pytest.fixture(scope="package")
def cluster(jars: None) -> Iterator[KafkaCluster]:
    """Three nodes that delete old segments soon, but not within the longest delay of a test."""
    with KafkaCluster.running(
        3,
        auto_leader_rebalance_enable=False,
        min_insync_replicas=2,
        log_roll_ms=2_000,
        log_retention_ms=40_000,
        log_retention_check_interval_ms=1_000,
        log_initial_task_delay_ms=1_000,
    ) as cluster:
        yield cluster


@pytest.fixture
def settings(cluster: KafkaCluster, tmp_path: Path) -> Settings:
    return short_times(cluster.bootstrap_servers, tmp_path, session_timeout=6.0, replicas=3)
