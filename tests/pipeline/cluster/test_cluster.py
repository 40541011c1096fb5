"""The commands on a cluster of a master and two workers give the same tables as on a local master.

A worker is killed during the last command, `summarize`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from purgatory.pipeline.commands import parser
from purgatory.pipeline.jobs import job_of
from purgatory.pipeline.jobs.generate import generate
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.workload import Workload
from tests.pipeline.alike import assert_alike, rows
from tests.pipeline.cluster.driver import Orders
from tests.pipeline.cluster.standalone import standalone
from tests.pipeline.settings import SETTINGS

# A cluster takes half a minute on two cores, and more if they have other work.
pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

# In each of so many journals.
OPERATIONS: Final = 500
JOURNALS: Final = 4

ON_A_CLUSTER: Final = {
    **SETTINGS,
    "spark.driver.memory": "1g",
    "spark.executor.extraJavaOptions": SETTINGS["spark.driver.extraJavaOptions"],
    "spark.executor.memory": "512m",
    # Both workers get tasks.
    "spark.default.parallelism": "12",
    # The status of a stage tells of each task at once, and not every 100 ms.
    "spark.ui.liveUpdate.period": "0",
    # Spark asks a dead worker for its blocks three times, by default every five seconds.
    "spark.shuffle.io.retryWait": "100ms",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
}

# The tables that each command writes.
TABLES: Final = {
    "compact": ("operations", "checks"),
    "advise": tuple(f"advice/{name}" for name in ("curves", "timeouts", "effects", "verdicts")),
    "replay": tuple(f"replay/{name}" for name in ("settings", "recommendations")),
    "summarize": tuple(f"summary/{name}" for name in ("minutes", "pending", "hottest_keys", "fan_out")),
}


@dataclass(frozen=True)
class Runs:
    """The same commands on both masters, their datasets, and the events of the cluster."""

    commands: Sequence[str]
    local: Path
    cluster: Path
    events: Sequence[dict[str, Any]]


def arguments(command: str, journals: Path, dataset: Path) -> list[str]:
    return {
        "compact": ["compact", f"{journals}/*", f"{dataset}"],
        "advise": ["advise", f"{dataset}", "--hot-keys=1"],
        "replay": ["replay", f"{dataset}", "--operations=0", "--ticks=0.05", "--wheel-sizes=8"],
        "summarize": ["summarize", f"{dataset}"],
    }[command]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("compact", "summarize"), id="summarize"),
        pytest.param(tuple(TABLES), id="all commands"),
    ],
)
def runs(request: pytest.FixtureRequest, spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Run the commands once for all tests, at the same time on both masters."""
    commands: Sequence[str] = request.param
    local, remote, events, journals = (
        tmp_path_factory.mktemp(name) for name in ("local", "cluster", "events", "journals")
    )
    for seed in range(JOURNALS):
        generate(spark, f"{journals}/{seed}", Workload(operations=OPERATIONS, seed=seed, duration=300.0))
    with standalone(tmp_path_factory.mktemp("daemons")) as cluster, ThreadPoolExecutor(1) as thread:
        orders: Orders = {
            "master": cluster.url,
            "settings": {**ON_A_CLUSTER, "spark.eventLog.dir": events.as_uri()},
            "commands": [arguments(command, journals, remote) for command in commands],
            "workers": list(cluster.workers),
        }
        driver = thread.submit(
            subprocess.run,
            [sys.executable, "-m", "tests.pipeline.cluster.driver"],
            input=json.dumps(orders),
            cwd=Path(__file__).parents[3],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
            # That of the test would leave the thread waiting.
            timeout=500,
        )
        for command in commands:
            options = parser().parse_args(arguments(command, journals, local))
            job_of(options.command).run(spark, options)
        done = driver.result()
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = events.iterdir()
    return Runs(commands, local, remote, [json.loads(line) for line in log.read_text().splitlines()])


def test_each_command_gives_the_same_tables_on_a_cluster_that_loses_a_worker(runs: Runs) -> None:
    for command in runs.commands:
        for table in TABLES[command]:
            assert_alike(rows(f"{runs.cluster}/{table}"), rows(f"{runs.local}/{table}"))


def test_both_workers_ran_tasks(runs: Runs) -> None:
    tasks = [event for event in runs.events if event["Event"] == "SparkListenerTaskEnd"]
    assert {task["Task Info"]["Executor ID"] for task in tasks} == {"0", "1"}


def test_the_other_worker_repeats_the_tasks_of_the_killed_one(runs: Runs) -> None:
    ends = [event for event in runs.events if event["Event"] == "SparkListenerTaskEnd"]
    lost = [end for end in ends if end["Task End Reason"]["Reason"] == "ExecutorLostFailure"]
    assert lost
    done = ends[ends.index(lost[-1]) :]
    for task in lost:
        again = [
            end
            for end in done
            if end["Stage ID"] == task["Stage ID"]
            and end["Task Info"]["Partition ID"] == task["Task Info"]["Partition ID"]
            and end["Task End Reason"]["Reason"] == "Success"
        ]
        assert [end["Task Info"]["Executor ID"] != task["Task Info"]["Executor ID"] for end in again] == [
            True
        ]
