"""The time that a journal covers."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline.summarize.coverage import Coverage
from tests.pipeline.journals import NOON

NOON_US = round(NOON.timestamp()) * 1_000_000
SPAN = "first_us long, last_us long"


def test_a_journal_covers_the_time_from_its_first_event_to_its_last(spark: SparkSession) -> None:
    of_operations, of_checks, none = (
        spark.createDataFrame(rows, SPAN) for rows in ([(20, 30), (10, 110)], [(5, 5), (70, 70)], [])
    )

    assert Coverage.of(of_operations, of_checks) == Coverage(5, 110)
    assert Coverage.of(of_operations, none) == Coverage(10, 110)
    assert Coverage.of(none) == Coverage(0, 0)


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
