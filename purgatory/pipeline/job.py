"""The protocol of a command."""

from __future__ import annotations

import argparse
from typing import Protocol

from pyspark.sql import SparkSession


class Job(Protocol):
    """A command. Each command is a module in `jobs`, and `jobs.JOBS` lists it."""

    @property
    def NAME(self) -> str: ...

    @property
    def SUMMARY(self) -> str:
        """What the command does, in one line."""

    @property
    def EXAMPLES(self) -> str:
        """Examples for --help; %(prog)s stands for the name of the command."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None: ...

    def check(self, options: argparse.Namespace, /) -> None:
        """Raise PipelineError if there is nothing to work on. It is called before Spark starts."""

    def run(self, spark: SparkSession, options: argparse.Namespace, /) -> int | None:
        """Run the command. Returns its exit status, or None for 0. Raises PipelineError if it cannot run."""
