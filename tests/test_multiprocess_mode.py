"""Several workers in the multiprocess mode of prometheus_client, as docs/metrics.md describes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.parser import text_string_to_metric_families

# It prints what a scrape of its own port would give.
WORKER = """
import asyncio, sys
from prometheus_client import REGISTRY, Counter, generate_latest
from purgatory import DelayedValue, Purgatory
from purgatory.metrics import PurgatoryCollector

requests = Counter("requests", "Requests.")

async def main():
    async with Purgatory("polls") as polls:
        REGISTRY.register(PurgatoryCollector(polls))
        for _ in range(int(sys.argv[1])):
            requests.inc()
            polls.try_complete_else_watch(DelayedValue(60))
        print(generate_latest(REGISTRY).decode())

asyncio.run(main())
"""


def values(families: list[Metric]) -> dict[str, float]:
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_each_worker_exports_its_own_purgatory_and_the_shared_directory_has_nothing_of_it(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for operations in (2, 3):
        command = [sys.executable, "-c", WORKER, str(operations)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert values([*text_string_to_metric_families(done.stdout)])["purgatory_pending"] == operations

    together = CollectorRegistry()
    MultiProcessCollector(together, str(tmp_path))  # type: ignore[no-untyped-call]  # It has no types.
    assert values([*together.collect()]) == {"requests_total": 2 + 3}
