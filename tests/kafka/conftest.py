"""Apache Kafka for all tests of this directory, and the figures that they report."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from tests.conftest import LoopFactory
from tests.kafka.kafka_cluster import JARS, KafkaCluster

_FIGURES = pytest.StashKey[list[str]]()


def pytest_asyncio_loop_factories() -> dict[str, LoopFactory]:
    """The brokers are under test here, and not the event loop."""
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture(scope="session")
def jars() -> None:
    """Without Apache Kafka, the test is skipped; in CI it fails."""
    if not (JARS / ".built").exists():
        if "CI" in os.environ:
            pytest.fail(f"CI has to have Apache Kafka in {JARS}: make kafka")
        pytest.skip("Apache Kafka is not here: make kafka")


@pytest.fixture(scope="session")
def kafka_cluster(jars: None) -> Iterator[KafkaCluster]:
    """Three nodes, which all tests share. A test that ends one starts it again.

    They look for old segments each second. By default, that takes five minutes.
    """
    times = {"log_retention_check_interval_ms": 1_000, "log_initial_task_delay_ms": 1_000}
    with KafkaCluster.running(3, **times) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_node(jars: None) -> Iterator[KafkaCluster]:
    """One node, which all tests share."""
    with KafkaCluster.running(1) as cluster:
        yield cluster


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> list[str]:
    """Lines that are printed when all tests have run."""
    return request.config.stash.setdefault(_FIGURES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(_FIGURES, []):
        terminalreporter.write_line(line)
