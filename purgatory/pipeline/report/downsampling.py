"""Downsampling: summaries and curves with no more rows than a screen can show.

Summaries are shown by steps of time: the longer the time, the longer the steps. A step has a beginning
(``since``) and an end (``until``). Steps are whole minutes, aligned to 1970. The first and the last step are
shorter if the journal covers only a part of them. The rows of a curve that a chart cannot show are left out.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from purgatory.observer import OUTCOMES
from purgatory.pipeline.summarize.coverage import Coverage
from purgatory.pipeline.transforms.instants import MINUTE_US

# About as many steps as fit on a screen.
MAX_STEPS: Final = 500

_ROUND: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 720, 1440)
_SERIES: Final = ("purgatory", "kind")
_STEP: Final = ("since", "until")

# The number of cells in the height of the chart, for the share that still waits.
HEIGHT: Final = 300
# The number of cells per decade, for the logarithm of this share and of the waits. A curve keeps about 1,000
# points, even if it has a hundred million operations and waits from a microsecond to hours.
DECADE: Final = 40

_STRATUM: Final = ("purgatory", "kind", "key")


def minutes_per_step(minutes: int) -> int:
    """The minutes in a step: a round number, or whole days. So `minutes` make at most MAX_STEPS steps."""
    least = -(-minutes // MAX_STEPS)
    day = _ROUND[-1]
    return next((each for each in _ROUND if each >= least), -(-least // day) * day)


def minutes_in_steps(minutes: DataFrame, step: int, coverage: Coverage) -> DataFrame:
    """The table of `summarize.minutes` by steps of `step` minutes.

    Counts are added up. The quantile of a step is the highest quantile of its minutes, because quantiles
    cannot be merged.
    """
    operations = F.col("operations")
    highest = [name for name in minutes.columns if name.startswith(("wait_", "lateness_"))]
    return (
        _stepped(minutes, step, coverage)
        .groupBy(*_STEP, *_SERIES)
        .agg(
            F.sum("operations").alias("operations"),
            # A table of an older version lacks the outcomes that came later. It has no such operations.
            *(F.sum(F.coalesce(name, F.lit(0))).alias(name) for name in OUTCOMES),
            *(F.max(name).alias(name) for name in highest),
            (F.sum(F.col("tries_per_operation") * operations) / F.sum(operations)).alias(
                "tries_per_operation"
            ),
        )
    )


def fan_out_in_steps(fan_out: DataFrame, step: int, coverage: Coverage) -> DataFrame:
    """The table of `summarize.fan_out` by steps, in the same way."""
    return (
        _stepped(fan_out, step, coverage)
        .groupBy(*_STEP, "purgatory")
        .agg(
            *(F.sum(name).alias(name) for name in ("checks", "tried", "completed")),
            *(F.max(name).alias(name) for name in ("tried_p50", "tried_p99", "tried_max")),
        )
    )


def gaps_in_steps(gaps: DataFrame, step: int) -> DataFrame:
    """The steps with incomplete minutes, and the number of these minutes. All steps have the same length."""
    step_us = step * MINUTE_US
    start = _start_us(F.unix_micros("minute"), step_us)
    return gaps.groupBy(*_named(start, start + step_us)).agg(F.count("*").alias("incomplete_minutes"))


def pending_in_steps(pending: DataFrame, step: int, coverage: Coverage) -> DataFrame:
    """The highest number of pending operations in each step (``pending_max``), and the average over time
    (``pending_mean``).

    Includes the steps without a change, which have no row in the table by minutes.
    """
    since_us, until_us = F.unix_micros("since"), F.unix_micros("until")
    following = F.lead(since_us).over(Window.partitionBy(*_SERIES).orderBy("minute"))
    changing = _interval(since_us, until_us, F.col("pending_max"), F.col("pending_mean"))
    quiet = _interval(until_us, F.coalesce(following, until_us), F.col("pending_last"), F.col("pending_last"))
    intervals = (
        pending.withColumn("intervals", F.array(changing, quiet))
        .select(*_SERIES, F.inline("intervals"))
        .where("from_us < to_us")
    )
    step_us = step * MINUTE_US
    start = _start_us(F.col("from_us"), step_us)
    touched = F.sequence(start, _start_us(F.col("to_us") - 1, step_us), F.lit(step_us))
    share = F.least("to_us", F.col("start_us") + step_us) - F.greatest("from_us", "start_us")
    return (
        intervals.withColumn("start_us", F.explode(touched))
        .withColumn("share", share)
        .groupBy(*_covered(F.col("start_us"), step_us, coverage), *_SERIES)
        .agg(
            F.max("most").alias("pending_max"),
            (F.sum(F.col("mean") * F.col("share")) / F.sum("share")).alias("pending_mean"),
        )
    )


def downsampled(curves: DataFrame) -> DataFrame:
    """Select the rows of `survival.curves` that suffice to draw the share, or its logarithm, over log time.

    Keeps the first row in each cell of a grid, and the last row of each curve. A dropped row is in the same
    cell as the last kept row before it. This takes one pass, and no task has to hold a whole curve.
    """
    cell = (
        F.floor(F.col("survival") * HEIGHT).alias("height"),
        # This is null where the share is zero. The null makes a separate cell.
        F.floor(F.log10("survival") * DECADE).alias("share"),
        F.floor(F.log10(F.greatest("waited_us", F.lit(1))) * DECADE).alias("wait"),
        (F.col("at_risk") == F.col("ended")).alias("last"),
    )
    row = F.struct("waited_us", *(name for name in curves.columns if name not in ("waited_us", *_STRATUM)))
    # The least row is the first: waited_us is its first field, and unique within a curve.
    first = curves.groupBy(*_STRATUM, *cell).agg(F.min(row).alias("row"))
    return first.select(*_STRATUM, "row.*")


def _stepped(by_minute: DataFrame, step: int, coverage: Coverage) -> DataFrame:
    step_us = step * MINUTE_US
    start = _start_us(F.unix_micros("minute"), step_us)
    others = (name for name in by_minute.columns if name not in _STEP)
    return by_minute.select(*_covered(start, step_us, coverage), *others)


def _covered(start_us: Column, step_us: int, coverage: Coverage) -> list[Column]:
    """The part of a step that the journal covers."""
    since_us = F.greatest(start_us, F.lit(coverage.since_us))
    return _named(since_us, F.least(start_us + step_us, F.lit(coverage.until_us)))


def _named(since_us: Column, until_us: Column) -> list[Column]:
    return [F.timestamp_micros(at).alias(name) for at, name in zip((since_us, until_us), _STEP, strict=True)]


def _start_us(instant_us: Column, step_us: int) -> Column:
    return instant_us - F.pmod(instant_us, F.lit(step_us))


def _interval(since_us: Column, until_us: Column, most: Column, mean: Column) -> Column:
    return F.struct(
        since_us.alias("from_us"),
        until_us.alias("to_us"),
        most.alias("most"),
        mean.cast("double").alias("mean"),
    )
