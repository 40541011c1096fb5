"""What a command is."""

from __future__ import annotations

import argparse
from typing import Protocol

from pyspark.sql import SparkSession


class Job(Protocol):
    """A command; each is a module in `jobs`, and listed there."""

    @property
    def NAME(self) -> str: ...

    @property
    def SUMMARY(self) -> str:
        """What it does, in one line."""

    @property
    def EXAMPLES(self) -> str:
        """Calls of it, for its --help, where %(prog)s becomes its name."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None: ...

    def run(self, spark: SparkSession, options: argparse.Namespace, /) -> None:
        """Do it. Raises PipelineError where that cannot be."""
