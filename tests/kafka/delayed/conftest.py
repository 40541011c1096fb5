"""A cluster for the delay service, each of whose tests has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from examples.delayed.settings import Settings
from examples.delayed.topics import Topics
from tests.examples.delayed.live_service import PARTITIONS
from tests.kafka.kafka_cluster import KafkaCluster

_numbers = count(1)


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
    """Times as short as Kafka takes them."""
    return Settings(
        cluster.bootstrap_servers,
        tmp_path,
        topics=Topics(f"delayed{next(_numbers)}"),
        partitions=PARTITIONS,
        session_timeout=6.0,
        lease=0.2,
        levels=(50, 100, 200),
    )
