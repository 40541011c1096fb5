"""A cluster for all tests of a module, each of which has topics of its own, and one event loop for all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.delayed.settings import Settings
from tests.conftest import LoopFactory
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.live_cluster import LiveCluster
from tests.examples.delayed.running import short_times


def pytest_asyncio_loop_factories() -> dict[str, LoopFactory]:
    """Kafka's client runs on asyncio's own loop in most programs; here it is not under test."""
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[LiveCluster]:
    with LiveCluster.running(CONFIG) as cluster:
        yield cluster


@pytest.fixture
def settings(shared_cluster: LiveCluster, tmp_path: Path) -> Settings:
    return short_times(shared_cluster.bootstrap_servers, tmp_path, session_timeout=2.0, replicas=1)
