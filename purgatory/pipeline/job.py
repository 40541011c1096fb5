"""The protocol of a job."""

from __future__ import annotations

import argparse
from typing import Protocol

from pyspark.sql import SparkSession


class Job(Protocol):
    """The work of a command. Each job is a module in `jobs`, and `jobs.JOBS` has it by its name."""

    def check(self, options: argparse.Namespace, /) -> None:
        """Raise PipelineError if there is nothing to work on. It is called before Spark starts."""

    def run(self, spark: SparkSession, options: argparse.Namespace, /) -> int | None:
        """Do the work. Returns the exit status, or None for 0. Raises PipelineError if it cannot work."""
