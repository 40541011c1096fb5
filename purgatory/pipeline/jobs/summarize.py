"""The command `summarize`: measures of each minute, and the hottest keys."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pyspark.sql import SparkSession

from purgatory.pipeline.arguments import add_dataset, whole_number
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.sizing import fit
from purgatory.pipeline.summarize.changes import CHANGES, changes
from purgatory.pipeline.summarize.condensation import condensed
from purgatory.pipeline.summarize.coverage import Coverage
from purgatory.pipeline.summarize.fan_out import fan_out
from purgatory.pipeline.summarize.gaps import gap_minutes, mark_gaps
from purgatory.pipeline.summarize.hottest_keys import KEYS, hottest_keys
from purgatory.pipeline.summarize.minutes import COUNTED, minutes
from purgatory.pipeline.summarize.pending import pending
from purgatory.pipeline.tables import FAN_OUT, GAP_MINUTES, HOTTEST_KEYS, MINUTES, PENDING, SUMMARY_TABLES

NAME: Final = "summarize"
SUMMARY: Final = (
    "Measure ended and pending operations and checks of keys in each minute, and find the hottest keys."
)
EXAMPLES: Final = """\
  %(prog)s build/dataset
  %(prog)s build/dataset --hottest 100
      the hundred hottest keys of each purgatory instead of twenty
"""


def add_arguments(parser: ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--hottest",
        type=whole_number(1),
        default=20,
        metavar="N",
        help="the number of keys of each purgatory by each measure (default: %(default)s)",
    )


def run(spark: SparkSession, options: Namespace) -> None:
    dataset: Dataset = options.dataset
    fit(spark, dataset.size)
    this_run = dataset.new_run(SUMMARY_TABLES)
    dataset.replace(GAP_MINUTES, gap_minutes(dataset.read_gaps(spark)), this_run)
    gaps = dataset.read_derived(spark, GAP_MINUTES)

    # All that is cached has few rows.
    read = condensed(dataset.read_operations(spark), COUNTED, KEYS, CHANGES).cache()
    of_operations = changes(CHANGES.of(read)).cache()
    of_checks = fan_out(dataset.read_checks(spark)).cache()
    coverage = Coverage.of(of_operations, of_checks)
    by_minute = {
        MINUTES: minutes(COUNTED.of(read)),
        PENDING: pending(of_operations, coverage),
        FAN_OUT: of_checks.drop("first_us", "last_us"),
    }
    frames = {table: mark_gaps(coverage.mark(frame), gaps) for table, frame in by_minute.items()}
    frames[HOTTEST_KEYS] = hottest_keys(KEYS.of(read), up_to=options.hottest)
    for table, frame in frames.items():
        rows = dataset.replace(table, frame, this_run)
        print(f"{dataset.derived(table).path}: {rows:,} rows")
    for cached in (read, of_operations, of_checks):
        cached.unpersist()

    stored = dataset.derived(GAP_MINUTES)
    print(incompleteness(stored.rows()["minute"].to_pylist(), stored.path))


def incompleteness(minutes: Sequence[datetime], path: str) -> str:
    """Which minutes are incomplete, in a sentence. They are in order, in the table at `path`."""
    if not minutes:
        return "All minutes are complete."
    first, last = (f"{minute:%Y-%m-%d %H:%M}" for minute in (minutes[0], minutes[-1]))
    return f"{len(minutes):,} minutes from {first} to {last} are incomplete, see {path}"
