"""The command `run`: all steps from a journal to its page, in one Spark session."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Final

from pyspark.sql import SparkSession

from purgatory.pipeline.commands import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.job import Job
from purgatory.pipeline.jobs import advise, compact, replay, report, summarize
from purgatory.pipeline.separation import check_apart

# The steps, and the arguments that each step takes.
_STEPS: Final[tuple[tuple[str, Job, tuple[str, ...]], ...]] = (
    ("compact", compact, ("journal", "dataset")),
    ("summarize", summarize, ("dataset",)),
    ("advise", advise, ("dataset",)),
    ("replay", replay, ("dataset",)),
    ("report", report, ("dataset", "page")),
)


def check(options: argparse.Namespace) -> None:
    check_apart(Dataset(options.dataset), journal=options.journal, page=options.page)
    compact.check(options)


def run(spark: SparkSession, options: argparse.Namespace) -> int:
    """Run the steps with their default options, until a step fails. Returns its exit status, or 0."""
    began = time.monotonic()
    for number, (name, step, arguments) in enumerate(_STEPS, start=1):
        print(f"step {number} of {len(_STEPS)}: {name}", file=sys.stderr, flush=True)
        of_step = parser().parse_args([name, "--", *(getattr(options, each) for each in arguments)])
        step.check(of_step)
        status = step.run(spark, of_step)
        sys.stdout.flush()
        if status:
            return status
    print(f"{len(_STEPS)} steps in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0
