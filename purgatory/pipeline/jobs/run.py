"""The command `run`: all steps from a journal to its page, in one Spark session."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Final

from pyspark.sql import SparkSession

from purgatory.pipeline.arguments import add_dataset, add_journal, check_apart, output
from purgatory.pipeline.job import Job
from purgatory.pipeline.jobs import advise, compact, replay, report, summarize

NAME: Final = "run"
SUMMARY: Final = "Do all steps: compact, summarize, advise, replay and report, in one Spark session."
EXAMPLES: Final = """\
  %(prog)s build/journal build/dataset build/page
      then open build/page/index.html
  %(prog)s '/journals/*' build/dataset build/page
      reads the journals of many nodes; run it again while they grow
"""

# The steps, and the arguments that each step takes.
_STEPS: Final[tuple[tuple[Job, tuple[str, ...]], ...]] = (
    (compact, ("journal", "dataset")),
    (summarize, ("dataset",)),
    (advise, ("dataset",)),
    (replay, ("dataset",)),
    (report, ("dataset", "page")),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_journal(parser)
    add_dataset(parser)
    parser.add_argument(
        "page", type=output, metavar="PAGE", help="the folder for the page: index.html and its tables"
    )


def check(options: argparse.Namespace) -> None:
    check_apart(options.dataset, journal=options.journal, page=options.page)
    compact.check(options)


def run(spark: SparkSession, options: argparse.Namespace) -> int:
    """Run the steps with their default options, until a step fails. Returns its exit status, or 0."""
    given = {"journal": options.journal, "dataset": options.dataset.root, "page": options.page}
    began = time.monotonic()
    for number, (step, names) in enumerate(_STEPS, start=1):
        print(f"step {number} of {len(_STEPS)}: {step.NAME}", file=sys.stderr, flush=True)
        parser = argparse.ArgumentParser()
        step.add_arguments(parser)
        of_step = parser.parse_args(["--", *(given[name] for name in names)])
        step.check(of_step)
        status = step.run(spark, of_step)
        sys.stdout.flush()
        if status:
            return status
    print(f"{len(_STEPS)} steps in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0
