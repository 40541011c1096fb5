"""Bins of whole numbers. `summarize/test_groups.py` tests the quantiles of binned numbers."""

from __future__ import annotations

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline.transforms.quantiles import binned, bins


def test_a_bin_is_exact_below_2048_and_else_less_than_a_thousandth_too_low(spark: SparkSession) -> None:
    amounts = [least + number for least in (0, 2040, 10**6, 2**52 - 5) for number in range(20)]
    frame = spark.createDataFrame([(amount,) for amount in (*amounts, None)], "amount long")

    rows = frame.withColumn("bin", binned(F.col("amount"))).collect()
    bins = {row["amount"]: row["bin"] for row in rows}

    assert bins.pop(None) is None
    assert all(found == amount for amount, found in bins.items() if amount < 2048)
    assert all(amount * 0.999 < found <= amount for amount, found in bins.items() if amount)
    assert [bins[amount] for amount in sorted(bins)] == sorted(bins.values())


def test_the_bins_of_the_workers_are_those_of_spark(spark: SparkSession) -> None:
    amounts = [*range(10), *(least + number for least in (2040, 10**6, 2**40) for number in range(-9, 9))]
    frame = spark.createDataFrame([(amount,) for amount in amounts], "amount long")
    rows = frame.select("amount", binned(F.col("amount")).alias("bin")).collect()
    expected = zip(amounts, bins(np.array(amounts)).tolist(), strict=True)
    assert {row["amount"]: row["bin"] for row in rows} == dict(expected)


def test_there_are_1024_bins_between_a_power_of_two_and_the_next(spark: SparkSession) -> None:
    frame = spark.range(2**15, 2**16).select(binned(F.col("id")).alias("bin"))

    assert frame.distinct().count() == 1024
