"""Whether Apache Kafka is here, and the figures that its tests report."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.conftest import LoopFactory
from tests.kafka.kafka_cluster import JARS

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


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> list[str]:
    """Lines that are printed when all tests have run."""
    return request.config.stash.setdefault(_FIGURES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(_FIGURES, []):
        terminalreporter.write_line(line)
