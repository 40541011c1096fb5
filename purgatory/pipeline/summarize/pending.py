"""The number of pending operations over time."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.summarize.coverage import Coverage
from purgatory.pipeline.transforms.instants import MINUTE_US
from purgatory.pipeline.transforms.running_sum import running_sum

_SERIES: Final = ("purgatory", "kind")


def pending(changes: DataFrame, coverage: Coverage) -> DataFrame:
    """One row for each minute in which an operation began or ended, from the rows of `changes`.

    Columns: the maximum ``pending_max``; the average ``pending_mean`` over the time of the minute that the
    journal covers, which is the time that operations were pending in it, divided by that time; and the number
    at its end ``pending_last``. In a minute without a row the number is constant.
    """
    summed = running_sum(changes, order_by=["minute_us"], value_columns=["net"], within=_SERIES)
    minute, before = F.col("minute_us"), F.col("net_running") - F.col("net")
    return summed.select(
        F.timestamp_micros(minute).alias("minute"),
        *_SERIES,
        _highest(before).alias("pending_max"),
        ((before * MINUTE_US + F.col("area_us")) / coverage.of_minute(minute)).alias("pending_mean"),
        F.col("net_running").alias("pending_last"),
    )


def _highest(before: Column) -> Column:
    """The number before the first change counts if the minute did not begin with this change."""
    at_first = F.when(F.col("first_us") > F.col("minute_us"), before)
    return F.greatest(before + F.col("most"), at_first)
