"""The number of pending operations over time."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.transforms.instants import ended, minute_of
from purgatory.pipeline.transforms.running_sum import running_sum

_SERIES: Final = ("purgatory", "kind")
_MINUTE_US: Final = 60_000_000


def pending(operations: DataFrame) -> DataFrame:
    """One row for each purgatory, kind and millisecond ``at`` which the number of pending operations changed.

    ``change`` is the difference, and ``pending`` the number from then on. It is never negative, and zero at
    the end. Operations that begin and end in the same millisecond are not counted. So a day has at most 86.4
    million rows, whatever the number of operations.
    """
    one_more = F.struct(F.col("started").alias("at"), F.lit(1).alias("change"))
    one_less = F.struct(ended().alias("at"), F.lit(-1).alias("change"))
    changes = (
        operations.select(*_SERIES, F.inline(F.array(one_more, one_less)))
        .groupBy(*_SERIES, F.date_trunc("millisecond", "at").alias("at"))
        .agg(F.sum("change").alias("change"))
        .where("change != 0")
    )
    summed = running_sum(changes, order_by=["at"], value_columns=["change"], within=_SERIES)
    return summed.withColumnRenamed("change_running", "pending")


def pending_by_minute(pending: DataFrame) -> DataFrame:
    """One row for each minute in which the number of pending operations changed.

    Columns: the maximum ``pending_max``; the average over the time of the minute ``pending_mean``; and the
    number at its end ``pending_last``. In a minute without a row the number is constant.
    """
    minute = minute_of(F.col("at"))
    left_us = F.lit(_MINUTE_US) - (F.unix_micros("at") - F.unix_micros(minute))
    until_then = F.col("pending") - F.col("change")
    return pending.groupBy(minute.alias("minute"), *_SERIES).agg(
        F.max(F.greatest("pending", F.when(F.col("at") > minute, until_then))).alias("pending_max"),
        (F.min_by(until_then, "at") + F.sum(F.col("change") * left_us) / _MINUTE_US).alias("pending_mean"),
        F.max_by("pending", "at").alias("pending_last"),
    )
