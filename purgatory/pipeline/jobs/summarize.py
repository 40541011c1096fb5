"""The command `summarize`: measures of each minute, and the hottest keys."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pyspark.sql import SparkSession

from purgatory.pipeline.arguments import add_dataset, whole_number
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.exchange import gather
from purgatory.pipeline.summarize import fan_out, gaps, minutes
from purgatory.pipeline.summarize.coverage import Coverage
from purgatory.pipeline.summarize.hottest_keys import hottest_keys, ranked
from purgatory.pipeline.summarize.pending import CHANGES, pending
from purgatory.pipeline.tables import FAN_OUT, GAP_MINUTES, HOTTEST_KEYS, MINUTES, PENDING, SUMMARY_TABLES

NAME: Final = "summarize"
SUMMARY: Final = (
    "Measure ended and pending operations and checks of keys in each minute, and find the hottest keys."
)
EXAMPLES: Final = """\
  %(prog)s build/dataset
  %(prog)s build/dataset --hottest 100
      finds the hundred hottest keys of each purgatory instead of twenty
"""


def add_arguments(parser: ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--hottest",
        type=whole_number(1),
        default=20,
        metavar="N",
        help="the number of hottest keys, for each purgatory and each measure (default: %(default)s)",
    )


def check(options: Namespace) -> None:
    dataset: Dataset = options.dataset
    dataset.check_compacted()


def run(spark: SparkSession, options: Namespace) -> None:
    dataset: Dataset = options.dataset
    this_run = dataset.new_run(SUMMARY_TABLES)
    parts = (
        CHANGES,
        minutes.MINUTES,
        hottest_keys(up_to=options.hottest),
        fan_out.FAN_OUT,
        gaps.GAP_MINUTES,
    )
    pass_over = gather(spark.sparkContext, dataset.files(), parts)
    changed, of_checks, gap_minutes = (pass_over[name] for name in ("changes", "fan_out", "gaps"))
    coverage = Coverage.of(changed, of_checks)
    by_minute = {
        MINUTES: pass_over["minutes"],
        PENDING: pending(changed, coverage),
        FAN_OUT: of_checks,
    }
    rows = {GAP_MINUTES: gap_minutes}
    rows |= {table: gaps.mark_gaps(coverage.mark(own), gap_minutes) for table, own in by_minute.items()}
    rows[HOTTEST_KEYS] = ranked(pass_over["hottest_keys"], up_to=options.hottest)
    for table, own in rows.items():
        dataset.replace_table(table, own, this_run)
        if table is not GAP_MINUTES:
            print(f"{dataset.derived(table).path}: {own.num_rows:,} rows")

    stored = dataset.derived(GAP_MINUTES)
    print(incompleteness(stored.rows()["minute"].to_pylist(), stored.path))


def incompleteness(minutes: Sequence[datetime], path: str) -> str:
    """Say which minutes are incomplete. `minutes` are in order; they are in the table at `path`."""
    if not minutes:
        return "All minutes are complete."
    first, last = (f"{minute:%Y-%m-%d %H:%M}" for minute in (minutes[0], minutes[-1]))
    return f"{len(minutes):,} minutes from {first} to {last} are incomplete, see {path}"
