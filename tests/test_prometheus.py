"""Prometheus scrapes a service, and evaluates the queries of the dashboard and the alerts of docs/."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from purgatory import Purgatory, PurgatoryFull
from purgatory.metrics import DelayedCollector, PurgatoryCollector, RelayCollector
from purgatory.relay import RelayStatistics
from tests.operations import Gate, raising
from tests.scrape import FakeMessages, FakeRelay
from tests.test_monitoring import DASHBOARD, alerts, expressions

if TYPE_CHECKING:
    from purgatory.delayed import DelayedStatistics

pytestmark = [pytest.mark.long, pytest.mark.real_time]

SCRAPES = 6


class LosingJournal:
    """It has lost more rows at each look."""

    @property
    def lost_operations(self) -> int:
        return time.monotonic_ns()

    lost_checks = lost_operations


class FailingMessages(FakeMessages):
    """More messages are dead at each look, and the first one has waited for a minute."""

    def statistics(self) -> DelayedStatistics:
        return replace(super().statistics(), dead=time.monotonic_ns(), lag_seconds=60)


class DeafRelay(FakeRelay):
    """It hears nothing, and has failed more often at each look."""

    def statistics(self) -> RelayStatistics:
        return RelayStatistics(False, *[time.monotonic_ns()] * 14)


class SickService(Collector):
    """At each scrape, all that the alerts look for goes wrong, but in the purgatory `healthy`."""

    def __init__(self, full: Purgatory, slow: Purgatory, healthy: Purgatory) -> None:
        self.scraped = asyncio.Event()
        self._full, self._slow, self._healthy = full, slow, healthy
        self._loop = asyncio.get_running_loop()
        self._scrapes = 0

    def collect(self) -> Iterator[Metric]:
        self._loop.call_soon_threadsafe(self._go_wrong)
        return iter(())

    def _go_wrong(self) -> None:
        for _ in range(3):
            with suppress(PurgatoryFull):
                self._full.try_complete_else_watch(Gate(600), ["key"])
        failing = self._full.try_complete_else_watch(Gate(trying=raising(ValueError("bad"))), ["key"])
        assert failing.exception() is not None
        self._slow.try_complete_else_watch(Gate(0.001, expiring=lambda: time.sleep(0.1)), ["key"])
        self._healthy.try_complete_else_watch(Gate(0.2), ["key"])
        self._healthy.try_complete_else_watch(Gate(opened=True), ["key"])
        self._scrapes += 1
        if self._scrapes == 2:
            time.sleep(0.6)
        if self._scrapes == SCRAPES:
            self.scraped.set()


@asynccontextmanager
async def prometheus(directory: Path, target: int) -> AsyncIterator[httpx.AsyncClient]:
    """A Prometheus that scrapes the port `target` of this host, and a client of its API."""
    program = shutil.which("prometheus")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("prometheus is missing: install Debian's package prometheus")
        pytest.skip("prometheus is not installed (Debian's package prometheus has it)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    job = {"job_name": "purgatory", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
    config = {"global": {"scrape_interval": "300ms", "scrape_timeout": "300ms"}, "scrape_configs": [job]}
    # JSON is valid YAML.
    (directory / "prometheus.yml").write_text(json.dumps(config))
    options = [f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data"]
    with (directory / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program, *options, f"--web.listen-address={address}", stdout=log, stderr=log
        )
        try:
            async with httpx.AsyncClient(base_url=f"http://{address}/api/v1/") as client:
                yield client
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def evaluate(client: httpx.AsyncClient, query: str) -> list[dict[str, Any]]:
    """The series that `query` gives now."""
    answer = (await client.get("query", params={"query": query})).json()
    assert answer["status"] == "success", (query, answer)
    series: list[dict[str, Any]] = answer["data"]["result"]
    return series


async def test_each_query_of_the_dashboard_has_values_and_each_alert_fires_for_what_is_sick_alone(
    tmp_path: Path,
) -> None:
    registry = CollectorRegistry()
    async with (
        Purgatory("full", max_pending=2) as full,
        Purgatory("slow") as slow,
        Purgatory("healthy", max_pending=100) as healthy,
    ):
        sick = SickService(full, slow, healthy)
        registry.register(sick)
        registry.register(PurgatoryCollector(full, slow, healthy, journal=LosingJournal()))
        registry.register(DelayedCollector(FailingMessages(slow)))
        registry.register(RelayCollector(DeafRelay(slow)))
        server, thread = start_http_server(0, "127.0.0.1", registry=registry)
        try:
            async with prometheus(tmp_path, server.server_port) as client:
                async with asyncio.timeout(60):
                    await sick.scraped.wait()
                for text in expressions(DASHBOARD["panels"]):
                    query = re.sub(r"\$__(rate_interval|range)", "1m", text)
                    query = query.replace("$instance", ".*").replace("$purgatory", ".*")
                    values = [series["value"][1] for series in await evaluate(client, query)]
                    assert set(values) - {"NaN"}, query
                for alert in alerts():
                    # The test lasts for seconds.
                    series = await evaluate(client, alert.replace("> 3600", "> 1"))
                    assert series, alert
                    assert "healthy" not in {each["metric"].get("purgatory") for each in series}, alert
        finally:
            await asyncio.to_thread(server.shutdown)
            server.server_close()
            await asyncio.to_thread(thread.join)
