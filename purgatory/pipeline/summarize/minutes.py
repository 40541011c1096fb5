"""Outcomes, waits, lateness and tries of the operations that ended in each minute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from purgatory._statistics import OUTCOMES
from purgatory.pipeline.transforms.instants import ended, minute_of
from purgatory.pipeline.transforms.quantiles import binned, quantiles

_GROUP: Final = ("minute", "purgatory", "kind")
_WAITS: Final = {"wait_p50_us": 0.5, "wait_p90_us": 0.9, "wait_p99_us": 0.99, "wait_p999_us": 0.999}


def minutes(operations: DataFrame) -> DataFrame:
    """One row for each minute, purgatory and kind in which an operation ended.

    Columns: the number of ``operations``; their number by outcome (``completed``, …); quantiles of their
    waits, whatever the outcome, and of their lateness if they have one, in microseconds, with the precision
    of `binned`; and ``tries_per_operation``.
    """
    by_bin = operations.groupBy(
        minute_of(ended()).alias("minute"),
        "purgatory",
        "kind",
        "outcome",
        binned(F.col("waited_us")).alias("waited_us"),
        binned(F.col("lateness_us")).alias("lateness_us"),
    ).agg(F.count("*").alias("operations"), F.sum("tries").alias("tries"))
    return by_bin.groupBy(*_GROUP).agg(*measures(F.col("operations")))


def measures(count: Column) -> Sequence[Column]:
    """The aggregates of `minutes`. A row has binned waits, and stands for `count` operations.

    Its ``tries`` are those of all these operations.
    """
    return [
        F.sum(count).alias("operations"),
        *(
            F.sum(F.when(F.col("outcome") == outcome, count).otherwise(0)).alias(outcome)
            for outcome in OUTCOMES
        ),
        *quantiles(F.col("waited_us"), counts=count, named=_WAITS),
        *quantiles(F.col("lateness_us"), counts=count, named={"lateness_p99_us": 0.99}),
        (F.sum("tries") / F.sum(count)).alias("tries_per_operation"),
    ]
