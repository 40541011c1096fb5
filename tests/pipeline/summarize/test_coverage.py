"""The time that a journal covers."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline.summarize.coverage import Coverage
from purgatory.pipeline.summarize.fan_out import fan_out
from purgatory.pipeline.summarize.pending import changes
from tests.pipeline.journals import NOON

NOON_US = round(NOON.timestamp()) * 1_000_000


def test_a_journal_covers_the_time_from_its_first_event_to_its_last(operations: Any, checks: Any) -> None:
    of_operations = changes(operations({"started": 20}, {"started": 10, "waited_us": 100_000_000}))
    of_checks = fan_out(checks({"checked": 5}, {"checked": 70}))

    both = Coverage.of(of_operations, of_checks)
    assert (both.since_us - NOON_US, both.until_us - NOON_US) == (5_000_000, 110_000_000)
    assert Coverage.of(of_operations, fan_out(checks())).since_us == NOON_US + 10_000_000


def test_without_events_it_covers_nothing(operations: Any, checks: Any) -> None:
    assert Coverage.of(changes(operations()), fan_out(checks())) == Coverage(0, 0)


def test_the_first_and_the_last_minute_are_marked_as_partial(spark: SparkSession, collected: Any) -> None:
    minutes = spark.range(3).select(
        F.timestamp_micros(F.lit(NOON_US) + F.col("id") * 60_000_000).alias("minute")
    )
    coverage = Coverage(NOON_US + 12_000_000, NOON_US + 150_000_000)

    assert sorted(tuple(row.values()) for row in collected(coverage.mark(minutes))) == [
        (0.0, 12.0, 60.0, True),
        (60.0, 60.0, 120.0, False),
        (120.0, 120.0, 150.0, True),
    ]
