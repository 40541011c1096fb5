"""The waits of operations on the wheel of their purgatory, and the intervals in which to replay them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from purgatory.journal.schema import COMPLETED, FAILED
from purgatory.pipeline.replay.reaper import NEVER
from purgatory.pipeline.transforms.instants import ended

# The approximate number of waits that begin in an interval.
WAITS_PER_INTERVAL: Final = 20_000

# Each combination of node and purgatory has its own wheel.
WHEEL: Final = ("node", "purgatory")

# In microseconds. The recorded wait of an operation that ends with its first try is the time of this try.
_FIRST_TRY: Final = 1_000
# In microseconds, 285 years.
_LONGEST: Final = 1 << 53
# The warm-up of an interval has at most a quarter as many waits as begin in the interval.
_PENDING_TIMES: Final = 4

# What to say if `wheel_waits` has no rows.
NO_WAITS: Final = (
    "No recorded operation has waited for its timeout: each operation ended when it was first tried, or has "
    "no timeout. So there is nothing to replay."
)


# The columns of the operations that `wheel_waits` reads.
READS: Final = (*WHEEL, "outcome", "started", "timeout_us", "waited_us", "lateness_us", "tries")


def wheel_waits(operations: DataFrame) -> DataFrame:
    """One row for each operation that was on a wheel, with instants in microseconds of Unix time.

    ``entered_us`` is when the operation was added to the wheel. ``deadline_us`` is its deadline. ``left_us``
    is when it ended before its deadline, and null if its timeout expired. Operations without a timeout, or
    with a timeout of zero, are on no wheel.

    The journal has only the latest timeout of a rescheduled operation. So its time before this timeout is
    left out. If the operation expired, its deadline is known, and its latest timeout began one timeout
    earlier. If it ended otherwise, and had waited for longer than its timeout, its end is used as its
    deadline.

    An operation that ends with its first try is never added to a wheel, but the journal does not say so.
    So operations that completed or failed within a millisecond after one try are left out. This includes
    operations that were forced to complete while they waited.
    """
    never_waited = (
        F.col("outcome").isin(COMPLETED, FAILED) & (F.col("tries") == 1) & (F.col("waited_us") < _FIRST_TRY)
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


def intervals(
    waits: DataFrame, *, coarsest_us: int, newest: int | None = None, size: int = WAITS_PER_INTERVAL
) -> DataFrame:
    """Partition the time of each wheel into intervals in which about `size` waits begin.

    There is one row for each interval, from ``since_us`` until before ``until_us``. The next interval begins
    at ``until_us``; the last interval has no end. With `newest`, the intervals cover the last seconds, as few
    seconds as have at least `newest` waits that begin in them.

    The first interval begins with a second. The other intervals begin at instants at which the state of the
    reaper's alarm is known (see `reaper.ReplayInterval`): when a wait expires, or when a wait begins and all
    earlier waits are over, even with a tick of `coarsest_us`. Without such an instant, an interval continues.
    If more than a quarter of `size` waits are pending on average, intervals are longer. Otherwise the warm-up
    would be most of the work.
    """
    never = F.lit(None).cast("long")
    expires = F.when(F.col("left_us").isNull(), F.col("deadline_us"))
    moments = F.array(
        _moment(
            at_us=F.col("entered_us"),
            first_us=F.col("entered_us"),
            gone_us=off_the_wheel(coarsest_us),
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
    # A window over the following seconds would sum up these seconds again for each second.
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


def off_the_wheel(coarsest_us: int) -> Column:
    """When a wait is off the wheel, with any tick up to `coarsest_us`."""
    return F.coalesce("left_us", F.col("deadline_us") + coarsest_us)


def _moment(**fields: Column) -> Column:
    return F.struct(*(column.alias(name) for name, column in fields.items()))
