"""What ended in each stretch of time, also of a journal that is still being written."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.transforms.instants import ended
from purgatory.pipeline.transforms.minutes import measures
from purgatory.pipeline.transforms.quantiles import binned


def windows(operations: DataFrame, *, length_ms: int, lateness_ms: int) -> DataFrame:
    """The measures of `minutes` by purgatory, kind and windows of this length, from ``start`` to ``end``.

    And ``latest``, when the last of its operations ended. Of a stream, a window takes operations until one is
    seen that ended `lateness_ms` after the window did; those that come later still are dropped.

    Counted in one step where `minutes` takes two, because a stream that tells of open windows allows no more.
    So the quantiles of a window are what its waits leave when they are binned: a few thousand counts.
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
        *measures(F.lit(1)), F.max("ended").alias("latest")
    )
    return counted.select("window.start", "window.end", *counted.drop("window").columns)


def _interval(milliseconds: int) -> str:
    return f"{milliseconds} milliseconds"
