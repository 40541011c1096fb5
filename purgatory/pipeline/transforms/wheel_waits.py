"""When operations were on the wheel of their purgatory, and where these times can be cut."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from purgatory.pipeline.transforms.instants import ended
from purgatory.pipeline.transforms.reaper import NEVER

# Waits that begin in a stretch, about.
STRETCH: Final = 20_000

# Each has a wheel of its own.
WHEEL: Final = ("node", "purgatory")

# In microseconds. What ends with its first try is recorded as having waited for as long as that took.
_FIRST_TRY: Final = 1_000
# In microseconds, 285 years.
_LONGEST: Final = 1 << 53
# The waits that are led into a stretch shall be a quarter of those that begin in it, at most.
_PENDING_TIMES: Final = 4


def wheel_waits(operations: DataFrame) -> DataFrame:
    """A row for each operation that was on a wheel: when it was put there (``entered_us``), when it was due
    (``deadline_us``), and when it ended before that (``left_us``; null if its timeout expired).

    In microseconds of Unix time. What has no timeout, or one of zero, is on no wheel. Of one that was
    rescheduled the latest timeout alone is recorded, so what it did before that is left out. When it
    expired, that began one timeout before its deadline, which is known. Else only that it was pending at
    its end is: if it had waited for longer than its timeout by then, that is taken for its deadline.

    What ends with its first try is never put on a wheel, but nothing recorded says so. Left out is therefore
    what completed or failed within a millisecond after one try, also if it was forced to when it waited.
    """
    never_waited = (
        F.col("outcome").isin("completed", "failed")
        & (F.col("tries") == 1)
        & (F.col("waited_us") < _FIRST_TRY)
    )
    started, timeout, end = F.unix_micros("started"), F.col("timeout_us"), F.unix_micros(ended())
    lateness = F.col("lateness_us")
    deadline = F.coalesce(end - lateness, F.greatest(started + timeout, end))
    return (
        operations.where(timeout.between(1, _LONGEST) & ~never_waited)
        .select(
            *WHEEL,
            (deadline - timeout).alias("entered_us"),
            deadline.alias("deadline_us"),
            F.when(lateness.isNull(), end).alias("left_us"),
        )
        .where("left_us IS NULL OR left_us > entered_us")
    )


def stretches(
    waits: DataFrame, *, coarsest_us: int, newest: int | None = None, size: int = STRETCH
) -> DataFrame:
    """Cut the time of each wheel into stretches in which about `size` waits begin.

    A row for each, from ``since_us`` until before ``until_us``, which is when the next one begins, or never.
    With `newest` they cover the last seconds only, as few as it takes for so many waits to begin in them.

    The first one begins with a second, and the others where it is known how the reaper's alarm is set (see
    `reaper.Stretch`): when a wait expires, or when one begins and all before it are over, also with a tick
    of `coarsest_us`. Where there is no such moment, a stretch goes on. Where more are pending on average
    than a quarter of `size`, stretches are longer, or most of the work would be to lead these in.
    """
    never = F.lit(None).cast("long")
    expires = F.when(F.col("left_us").isNull(), F.col("deadline_us"))
    moments = F.array(
        _moment(
            at_us=F.col("entered_us"),
            first_us=F.col("entered_us"),
            gone_us=gone(coarsest_us),
            expires_us=never,
        ),
        _moment(at_us=expires, first_us=never, gone_us=never, expires_us=expires),
    )
    by_second = (
        waits.select(*WHEEL, F.inline(moments))
        .where(F.col("at_us").isNotNull())
        .groupBy(*WHEEL, F.expr("at_us DIV 1000000").alias("second"))
        .agg(
            F.count("first_us").alias("begun"),
            F.sum(F.col("gone_us") - F.col("first_us")).alias("pending_us"),
            F.min("first_us").alias("first_us"),
            F.max("gone_us").alias("gone_us"),
            F.min("expires_us").alias("expires_us"),
        )
    )
    wheel = Window.partitionBy(*WHEEL)
    before = wheel.orderBy("second").rowsBetween(Window.unboundedPreceding, -1)
    quiet = F.coalesce(F.max("gone_us").over(before) <= F.col("first_us"), F.lit(True))
    span_us = F.max("gone_us").over(wheel) - F.min("first_us").over(wheel)
    pending = F.sum("pending_us").over(wheel) / span_us
    begun_before = F.coalesce(F.sum("begun").over(before), F.lit(0))
    # Spark would add up all that follows anew for each second.
    begun_after = F.sum("begun").over(wheel) - begun_before - F.col("begun")
    seconds = by_second.select(
        *WHEEL,
        "second",
        F.coalesce(F.when(quiet, F.col("first_us")), F.col("expires_us")).alias("border_us"),
        begun_before.alias("before"),
        begun_after.alias("after"),
        F.greatest(F.lit(size), _PENDING_TIMES * pending).alias("size"),
    )
    if newest is not None:
        seconds = seconds.where(F.col("after") < newest)
    return (
        seconds.withColumn("before", F.col("before") - F.min("before").over(wheel))
        .groupBy(*WHEEL, F.floor(F.col("before") / F.col("size")).alias("number"))
        .agg(F.min("second").alias("second"), F.min("border_us").alias("border_us"))
        .select(
            *WHEEL,
            F.when(F.col("number") == 0, F.col("second") * 1_000_000)
            .otherwise(F.col("border_us"))
            .alias("since_us"),
        )
        .where("since_us IS NOT NULL")
        .withColumn("until_us", F.lead("since_us", 1, NEVER).over(wheel.orderBy("since_us")))
    )


def gone(coarsest_us: int) -> Column:
    """When a wait is off the wheel, whichever tick is used of those up to `coarsest_us`."""
    return F.coalesce("left_us", F.col("deadline_us") + coarsest_us)


def _moment(**fields: Column) -> Column:
    return F.struct(*(column.alias(name) for name, column in fields.items()))
