"""The number of pending operations over time."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from purgatory.pipeline.summarize.coverage import MINUTE_US, Coverage
from purgatory.pipeline.transforms.running_sum import running_sum

_SERIES: Final = ("purgatory", "kind")


def changes(operations: DataFrame) -> DataFrame:
    """How the number of pending operations changed in each minute, exact to the microsecond.

    One row for each purgatory, kind and minute in which an operation began or ended: the instants of the
    first change, ``first_us``, and the last, ``last_us``; the ``net`` change; ``most``, the highest sum of
    changes since the minute began; and ``area_us``, the sum of changes, each times the rest of the minute.

    One task sorts the changes of a kind in a minute.
    """
    began_us = F.unix_micros("started")
    one_more = F.struct(began_us.alias("at_us"), F.lit(1).alias("change"))
    one_less = F.struct((began_us + F.col("waited_us")).alias("at_us"), F.lit(-1).alias("change"))
    at, change = F.col("at_us"), F.col("change")
    each = operations.select(*_SERIES, F.inline(F.array(one_more, one_less))).withColumn(
        "minute_us", at - F.pmod(at, F.lit(MINUTE_US))
    )
    # The sum includes all changes at the same instant.
    up_to_then = F.sum(change).over(Window.partitionBy(*_SERIES, "minute_us").orderBy("at_us"))
    return (
        each.withColumn("sum", up_to_then)
        .groupBy(*_SERIES, "minute_us")
        .agg(
            F.min(at).alias("first_us"),
            F.max(at).alias("last_us"),
            F.sum(change).alias("net"),
            F.max("sum").alias("most"),
            F.sum(change * (F.col("minute_us") + MINUTE_US - at)).alias("area_us"),
        )
    )


def pending(changes: DataFrame, coverage: Coverage) -> DataFrame:
    """One row for each minute in which an operation began or ended.

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
