"""Runs commands on a cluster, in a process of its own: ``python -m tests.pipeline.cluster.driver < ORDERS``.

A process has one SparkContext, and that of the tests is local. All commands share a session, since
executors take seconds to start.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Final, TypedDict

from pyspark.sql import SparkSession

from purgatory.pipeline.command import parser
from purgatory.pipeline.session import spark_session
from tests.pipeline.cluster.standalone import WORKERS, kill

# Seconds between two looks at what Spark is doing.
_EVERY: Final = 0.005


class Orders(TypedDict):
    """The master's URL, Spark's settings, and the commands as on a command line."""

    master: str
    settings: dict[str, str]
    commands: list[list[str]]
    # The worker to kill in the middle of the last command.
    victim: int


class Assassin(threading.Thread):
    """Kills a worker at its work, when a stage that reads what was shuffled has done some of its tasks."""

    def __init__(self, spark: SparkSession, victim: int) -> None:
        super().__init__(name="assassin")
        self._tracker = spark.sparkContext.statusTracker()
        self._victim = victim
        self._over = threading.Event()
        self.struck: str | None = None

    def run(self) -> None:
        while self.struck is None and not self._over.wait(_EVERY):
            self.struck = self._moment()
        if self.struck is not None:
            kill(self._victim)

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _moment(self) -> str | None:
        """What is in the middle, if anything is, and keeps all workers busy for longer than one task."""
        for stage in map(self._tracker.getStageInfo, self._tracker.getActiveStageIds()):
            if stage is None or not stage.numCompletedTasks or stage.numActiveTasks < WORKERS:
                continue
            if stage.numTasks - stage.numCompletedTasks - stage.numActiveTasks < WORKERS:
                continue
            for job in map(self._tracker.getJobInfo, self._tracker.getActiveJobsIds()):
                # The others of its stages came before it, be it for an earlier job.
                if job and len(job.stageIds) > 1 and stage.stageId in job.stageIds:
                    return f"{stage}, of {job}"
        return None


def main() -> None:
    orders: Orders = json.load(sys.stdin)
    with spark_session(orders["master"], "purgatory tests", settings=orders["settings"]) as spark:
        *usual, last = map(parser().parse_args, orders["commands"])
        for options in usual:
            options.job.run(spark, options)
        assassin = Assassin(spark, orders["victim"])
        assassin.start()
        try:
            last.job.run(spark, last)
        finally:
            assassin.stop()
        if assassin.struck is None:
            raise RuntimeError("it was over before there was a middle of it")
        print(assassin.struck)


if __name__ == "__main__":
    main()
