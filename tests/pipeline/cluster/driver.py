"""Runs commands on a cluster in a separate process: ``python -m tests.pipeline.cluster.driver < ORDERS``.

A process has one SparkContext, and that of the tests is local. All commands share one Spark, because
executors take seconds to start.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from typing import Final, TypedDict

from purgatory.pipeline.commands import parser
from purgatory.pipeline.jobs import job_of
from purgatory.pipeline.spark import Spark
from tests.pipeline.cluster.standalone import WORKERS, kill, suspended

# Seconds between two polls of Spark's status.
_EVERY: Final = 0.005
# Milliseconds that Spark's status may take to follow what has happened.
_STATUS_TIMEOUT: Final = 60_000


class Orders(TypedDict):
    """The master's URL, Spark's settings, and the commands as on a command line."""

    master: str
    settings: dict[str, str]
    commands: list[list[str]]
    # The process of each worker. The first one is killed during the last command.
    workers: list[int]


class WorkerKiller(threading.Thread):
    """Kills a worker while it runs a task of a stage that reads shuffled rows and has completed some tasks.

    Tasks are short, and Spark's status follows them late. So all workers are suspended before the status
    decides. A task that ends at that moment is replaced by one that waits, so each worker holds a task.
    """

    def __init__(self, spark: Spark, workers: Sequence[int]) -> None:
        super().__init__(name="killer")
        self._context = spark.context
        self._tracker = self._context.statusTracker()
        self._workers = workers
        self._over = threading.Event()
        self.killed_during: str | None = None

    def run(self) -> None:
        while self.killed_during is None and not self._over.wait(_EVERY):
            if self._suitable_stage() is None:
                continue
            with suspended(self._workers):
                self._context._jsc.sc().listenerBus().waitUntilEmpty(_STATUS_TIMEOUT)
                self.killed_during = self._suitable_stage()
                if self.killed_during is not None:
                    kill(self._workers[0])

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _suitable_stage(self) -> str | None:
        """A stage in progress that keeps all workers busy for longer than one task, if there is one."""
        for stage in map(self._tracker.getStageInfo, self._tracker.getActiveStageIds()):
            if stage is None or not stage.numCompletedTasks or stage.numActiveTasks < WORKERS:
                continue
            if stage.numTasks - stage.numCompletedTasks - stage.numActiveTasks < WORKERS:
                continue
            for job in map(self._tracker.getJobInfo, self._tracker.getActiveJobsIds()):
                # The job's other stages came before it, possibly for an earlier job.
                if job and len(job.stageIds) > 1 and stage.stageId in job.stageIds:
                    return f"{stage}, of {job}"
        return None


def main() -> None:
    orders: Orders = json.load(sys.stdin)
    with Spark(orders["master"], "purgatory tests", settings=orders["settings"]) as spark:
        *others, last = map(parser().parse_args, orders["commands"])
        for options in others:
            job_of(options.command).run(spark, options)
        killer = WorkerKiller(spark, orders["workers"])
        killer.start()
        try:
            job_of(last.command).run(spark, last)
        finally:
            killer.stop()
        if killer.killed_during is None:
            raise RuntimeError("no stage was suitable for killing a worker: the command ended first")
        print(killer.killed_during)


if __name__ == "__main__":
    main()
