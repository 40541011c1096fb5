"""The command `summarize`: measures of each minute, and the hottest keys."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline.arguments import add_dataset, whole_number
from purgatory.pipeline.tables import delete, replace
from purgatory.pipeline.transforms.coverage import Coverage
from purgatory.pipeline.transforms.fan_out import fan_out
from purgatory.pipeline.transforms.gaps import gap_minutes, mark_gaps
from purgatory.pipeline.transforms.hottest_keys import hottest_keys
from purgatory.pipeline.transforms.minutes import minutes
from purgatory.pipeline.transforms.pending import changes, pending

NAME: Final = "summarize"
SUMMARY: Final = (
    "Measure ended and pending operations and checks of keys in each minute, and find the hottest keys."
)
EXAMPLES: Final = """\
  %(prog)s build/dataset
  %(prog)s build/dataset --hottest 100
      the hundred hottest keys of each purgatory instead of twenty
"""

# The tables that it writes, in this order.
GAPS: Final = "gaps"
MINUTES: Final = "minutes"
PENDING: Final = "pending"
HOTTEST_KEYS: Final = "hottest_keys"
FAN_OUT: Final = "fan_out"


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
    dataset = options.dataset
    delete(spark, dataset.summary(FAN_OUT))
    replace(dataset.summary(GAPS), gap_minutes(dataset.read_gaps(spark)), order_by=("minute",))
    gaps = spark.read.parquet(dataset.summary(GAPS))

    operations = dataset.read_operations(spark)
    # Few rows, which are read more than once.
    of_operations, of_checks = changes(operations).cache(), fan_out(dataset.read_checks(spark)).cache()
    coverage = Coverage.of(of_operations, of_checks)
    by_minute = {
        MINUTES: minutes(operations),
        PENDING: pending(of_operations, coverage),
        FAN_OUT: of_checks.drop("first_us", "last_us"),
    }
    marked = {name: mark_gaps(coverage.mark(frame), gaps) for name, frame in by_minute.items()}
    by_kind = ("minute", "purgatory", "kind")
    tables = {
        MINUTES: (marked[MINUTES], by_kind),
        PENDING: (marked[PENDING], by_kind),
        HOTTEST_KEYS: (hottest_keys(operations, up_to=options.hottest), ("purgatory", "by", "rank")),
        FAN_OUT: (marked[FAN_OUT], ("minute", "purgatory")),
    }
    for name, (frame, order_by) in tables.items():
        path = dataset.summary(name)
        rows = replace(path, frame, order_by=order_by)
        print(f"{path}: {rows:,} rows")
    for frame in (of_operations, of_checks):
        frame.unpersist()

    since, until = (F.date_format(each("minute"), "yyyy-MM-dd HH:mm") for each in (F.min, F.max))
    ((incomplete, first, last),) = gaps.agg(F.count("*"), since, until).collect()
    if incomplete:
        print(f"{incomplete:,} minutes from {first} to {last} are incomplete, see {dataset.summary(GAPS)}")
