"""The work of each command. Each job reads tables, calls transforms, and writes tables."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Protocol, cast

from purgatory.pipeline.spark import Spark


class Job(Protocol):
    """The work of a command. Each job is a module with the name of its command."""

    def check(self, options: argparse.Namespace, /) -> None:
        """Raise PipelineError if there is nothing to work on. It is called before Spark starts."""

    def run(self, spark: Spark, options: argparse.Namespace, /) -> int | None:
        """Do the work. Returns the exit status, or None for 0. Raises PipelineError if it cannot work."""


def job_of(command: str) -> Job:
    """The job of a command. It is imported here, because no command needs the imports of all others."""
    return cast(Job, import_module(f"{__name__}.{command}"))
