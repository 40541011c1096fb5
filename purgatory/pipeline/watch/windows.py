"""The measures of `minutes` by windows of any length, also for a journal that is still being written."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from purgatory.observer import OUTCOMES
from purgatory.pipeline.transforms.instants import ended
from purgatory.pipeline.transforms.quantiles import LATENESS, WAITS, binned, quantiles


def windows(operations: DataFrame, *, length_ms: int, lateness_ms: int) -> DataFrame:
    """The measures of `minutes` by purgatory, kind and window, from ``start`` to ``end``.

    ``latest`` is the instant at which the last operation of the window ended. In a stream, a window accepts
    operations until an operation is read that ended `lateness_ms` after the window. Later operations are
    dropped.

    There is only one aggregation, because a stream in update mode allows no more. So a window keeps a count
    for each distinct combination of binned values: a few thousand counts.
    """
    timed = operations.select(
        "purgatory",
        "kind",
        "outcome",
        binned(F.col("waited_us")).alias("waited_us"),
        binned(F.col("lateness_us")).alias("lateness_us"),
        "tries",
        ended().alias("ended"),
    ).withWatermark("ended", _interval(lateness_ms))
    counted = timed.groupBy(F.window("ended", _interval(length_ms)), "purgatory", "kind").agg(
        *_measures(), F.max("ended").alias("latest")
    )
    return counted.select("window.start", "window.end", *counted.drop("window").columns)


def _measures() -> Sequence[Column]:
    return [
        F.count("*").alias("operations"),
        *(F.count_if(F.col("outcome") == outcome).alias(outcome) for outcome in OUTCOMES),
        *quantiles(F.col("waited_us"), WAITS),
        *quantiles(F.col("lateness_us"), LATENESS),
        F.avg("tries").alias("tries_per_operation"),
    ]


def _interval(milliseconds: int) -> str:
    return f"{milliseconds} milliseconds"
