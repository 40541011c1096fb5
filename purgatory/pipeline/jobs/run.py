"""The command `run`: all steps from a journal to its page, with one start of Spark."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Final

from purgatory.pipeline.commands import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs import compact, job_of
from purgatory.pipeline.separation import check_apart
from purgatory.pipeline.spark import Spark

# The steps, and the arguments that each step takes.
_STEPS: Final = {
    "compact": ("journal", "dataset"),
    "summarize": ("dataset",),
    "advise": ("dataset",),
    "replay": ("dataset",),
    "report": ("dataset", "page"),
}


def check(options: argparse.Namespace) -> None:
    check_apart(Dataset(options.dataset), journal=options.journal, page=options.page)
    compact.check(options)


def run(spark: Spark, options: argparse.Namespace) -> int:
    """Run the steps with their default options, until a step fails. Returns its exit status, or 0."""
    began = time.monotonic()
    for number, (name, arguments) in enumerate(_STEPS.items(), start=1):
        print(f"step {number} of {len(_STEPS)}: {name}", file=sys.stderr, flush=True)
        of_step = parser().parse_args([name, "--", *(getattr(options, each) for each in arguments)])
        step = job_of(name)
        step.check(of_step)
        status = step.run(spark, of_step)
        sys.stdout.flush()
        if status:
            return status
    print(f"{len(_STEPS)} steps in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0
