"""Summaries by steps of time. The longer the time, the longer the steps, so that a chart can show them all.

A step has a beginning (``since``) and an end (``until``). Steps are whole minutes, aligned to 1970.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from purgatory._statistics import OUTCOMES

# About as many as fit on a screen.
MAX_STEPS: Final = 500

_ROUND: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 720, 1440)
_MINUTE_US: Final = 60_000_000
_SERIES: Final = ("purgatory", "kind")
_STEP: Final = ("since", "until")


def minutes_per_step(minutes: int) -> int:
    """The length of a step, so that the minutes make at most MAX_STEPS: a round number, or whole days."""
    least = -(-minutes // MAX_STEPS)
    day = _ROUND[-1]
    return next((each for each in _ROUND if each >= least), -(-least // day) * day)


def minutes_in_steps(minutes: DataFrame, step: int) -> DataFrame:
    """The table of `transforms.minutes` by steps of `step` minutes.

    Counts are added up. A quantile is the highest of the minutes in the step: quantiles cannot be merged.
    """
    operations = F.col("operations")
    highest = [name for name in minutes.columns if name.startswith(("wait_", "lateness_"))]
    return (
        _stepped(minutes, step)
        .groupBy(*_STEP, *_SERIES)
        .agg(
            *(F.sum(name).alias(name) for name in ("operations", *OUTCOMES)),
            *(F.max(name).alias(name) for name in highest),
            (F.sum(F.col("tries_per_operation") * operations) / F.sum(operations)).alias(
                "tries_per_operation"
            ),
        )
    )


def fan_out_in_steps(fan_out: DataFrame, step: int) -> DataFrame:
    """The table of `transforms.fan_out` by steps, in the same way."""
    return (
        _stepped(fan_out, step)
        .groupBy(*_STEP, "purgatory")
        .agg(
            *(F.sum(name).alias(name) for name in ("checks", "tried", "completed")),
            *(F.max(name).alias(name) for name in ("tried_p50", "tried_p99", "tried_max")),
        )
    )


def gaps_in_steps(gaps: DataFrame, step: int) -> DataFrame:
    """The steps with incomplete minutes, and the number of these."""
    return _stepped(gaps, step).groupBy(*_STEP).agg(F.count("*").alias("incomplete_minutes"))


def pending_in_steps(pending: DataFrame, step: int) -> DataFrame:
    """How many operations were pending in each step: at most (``pending_max``), and on average over time
    (``pending_mean``).

    Includes the steps without a change, which have no row in the table by minutes.
    """
    minute_us = F.unix_micros("minute")
    until_us = minute_us + _MINUTE_US
    following = F.lead(minute_us).over(Window.partitionBy(*_SERIES).orderBy("minute"))
    changing = _interval(minute_us, until_us, F.col("pending_max"), F.col("pending_mean"))
    quiet = _interval(until_us, F.coalesce(following, until_us), F.col("pending_last"), F.col("pending_last"))
    intervals = (
        pending.withColumn("intervals", F.array(changing, quiet))
        .select(*_SERIES, F.inline("intervals"))
        .where("from_us < to_us")
    )
    step_us = step * _MINUTE_US
    start = _start_us(F.col("from_us"), step_us)
    touched = F.sequence(start, _start_us(F.col("to_us") - 1, step_us), F.lit(step_us))
    share = F.least("to_us", F.col("start_us") + step_us) - F.greatest("from_us", "start_us")
    return (
        intervals.withColumn("start_us", F.explode(touched))
        .withColumn("share", share)
        .groupBy(
            F.timestamp_micros("start_us").alias("since"),
            F.timestamp_micros(F.col("start_us") + step_us).alias("until"),
            *_SERIES,
        )
        .agg(
            F.max("most").alias("pending_max"),
            (F.sum(F.col("mean") * F.col("share")) / F.sum("share")).alias("pending_mean"),
        )
    )


def _stepped(by_minute: DataFrame, step: int) -> DataFrame:
    step_us = step * _MINUTE_US
    start = _start_us(F.unix_micros("minute"), step_us)
    return by_minute.withColumn("since", F.timestamp_micros(start)).withColumn(
        "until", F.timestamp_micros(start + step_us)
    )


def _start_us(instant_us: Column, step_us: int) -> Column:
    return instant_us - F.pmod(instant_us, F.lit(step_us))


def _interval(since_us: Column, until_us: Column, most: Column, mean: Column) -> Column:
    return F.struct(
        since_us.alias("from_us"),
        until_us.alias("to_us"),
        most.alias("most"),
        mean.cast("double").alias("mean"),
    )
