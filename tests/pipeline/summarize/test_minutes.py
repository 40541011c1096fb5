"""The measures of each minute."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from purgatory._statistics import OUTCOMES
from purgatory.pipeline.summarize.minutes import minutes
from purgatory.pipeline.transforms.quantiles import binned


def test_each_operation_is_counted_by_its_outcome_in_the_minute_in_which_it_ended(
    operations: Any, collected: Any
) -> None:
    frame = minutes(
        operations(
            {"waited_us": 59_999_999},
            {"waited_us": 60_000_000, "outcome": "cancelled"},
            {"waited_us": 61_000_000, "outcome": "expired", "lateness_us": 0},
            {"waited_us": 61_000_000, "outcome": "failed", "kind": "Other"},
            {"waited_us": 61_000_000, "outcome": "failed", "purgatory": "produce"},
            {"started": 61, "waited_us": 0, "outcome": "expired"},
        )
    )

    counted = [
        (row["minute"], row["purgatory"], row["kind"], row["operations"], *(row[name] for name in OUTCOMES))
        for row in collected(frame)
    ]

    assert counted == [
        (0.0, "fetch", "Fetch", 1, 1, 0, 0, 0),
        (60.0, "fetch", "Fetch", 3, 0, 2, 1, 0),
        (60.0, "fetch", "Other", 1, 0, 0, 0, 1),
        (60.0, "produce", "Fetch", 1, 0, 0, 0, 1),
    ]


def test_waits_have_quantiles_whatever_their_outcome(operations: Any) -> None:
    frame = minutes(
        operations(
            *({"waited_us": wait, "outcome": "expired" if wait % 2 else "completed"} for wait in range(1001))
        )
    )

    (row,) = frame.collect()

    assert (row["wait_p50_us"], row["wait_p90_us"], row["wait_p99_us"], row["wait_p999_us"]) == (
        500,
        900,
        990,
        999,
    )


def test_equal_waits_count_as_often_as_they_occur(operations: Any) -> None:
    frame = minutes(operations(*[{"waited_us": 10}] * 98, {"waited_us": 20}, {"waited_us": 30}))

    (row,) = frame.collect()

    assert (row["operations"], row["wait_p50_us"], row["wait_p90_us"]) == (100, 10, 10)


def test_lateness_is_measured_over_operations_that_have_one(operations: Any) -> None:
    frame = minutes(
        operations(
            *({"outcome": "expired", "lateness_us": late} for late in range(101)),
            *({"outcome": "expired", "lateness_us": None} for _ in range(5)),
            {"kind": "Prompt"},
        )
    )

    late = {row["kind"]: row["lateness_p99_us"] for row in frame.collect()}

    assert late == {"Fetch": 99, "Prompt": None}


def test_tries_are_averaged_over_operations(operations: Any) -> None:
    frame = minutes(
        operations({"tries": 1, "waited_us": 1}, {"tries": 1, "waited_us": 1}, {"tries": 7, "waited_us": 2})
    )

    assert [row["tries_per_operation"] for row in frame.collect()] == [3.0]


def test_no_row_is_lost_and_the_order_of_rows_does_not_matter(operations: Any, collected: Any) -> None:
    rows = [
        {
            "started": number * 7 % 200,
            "waited_us": number**4,
            "outcome": OUTCOMES[number % 4],
            "kind": "AB"[number % 2],
        }
        for number in range(120)
    ]

    forwards, backwards = (collected(minutes(operations(*some))) for some in (rows, rows[::-1]))

    assert forwards == backwards
    assert sum(row["operations"] for row in forwards) == 120
    assert all(row["operations"] == sum(row[name] for name in OUTCOMES) for row in forwards)


@pytest.mark.parametrize("least", [0, 2040, 10**6, 2**52 - 5])
def test_a_bin_is_exact_below_2048_and_else_less_than_a_thousandth_too_low(
    spark: SparkSession, least: int
) -> None:
    frame = spark.range(least, least + 20).select("id", binned(F.col("id")).alias("bin")).orderBy("id")

    bins = [(row["id"], row["bin"]) for row in frame.collect()]

    assert all(found == amount for amount, found in bins if amount < 2048)
    assert all(amount * 0.999 < found <= amount for amount, found in bins if amount)
    assert [found for _, found in bins] == sorted(found for _, found in bins)


def test_there_are_1024_bins_between_a_power_of_two_and_the_next(spark: SparkSession) -> None:
    frame = spark.range(2**15, 2**16).select(binned(F.col("id")).alias("bin"))

    assert frame.distinct().count() == 1024


def test_null_has_no_bin(spark: SparkSession) -> None:
    assert spark.range(1).select(binned(F.lit(None).cast("long"))).first() == (None,)
