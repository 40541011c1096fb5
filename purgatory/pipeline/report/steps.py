"""Summaries by steps of time that are long enough for a series to be drawn, whatever it spans.

The steps have a beginning (``since``) and an end (``until``); they are whole minutes, counted from 1970.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from purgatory.journal.schema import OUTCOMES

# About as many as a screen has room for.
AT_MOST: Final = 500

_ROUND: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 720, 1440)
_MINUTE_US: Final = 60_000_000
_SERIES: Final = ("purgatory", "kind")
_STEP: Final = ("since", "until")


def minutes_per_step(minutes: int) -> int:
    """How long a step is if so many minutes are AT_MOST of them: a round number of minutes, or whole days."""
    least = -(-minutes // AT_MOST)
    day = _ROUND[-1]
    return next((each for each in _ROUND if each >= least), -(-least // day) * day)


def minutes_in_steps(minutes: DataFrame, step: int) -> DataFrame:
    """What `transforms.minutes` tells, by steps of so many minutes.

    Counts are added up. A quantile is the highest of its minutes, since no more can be told from them.
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
    """What `transforms.fan_out` tells, in the same way."""
    return (
        _stepped(fan_out, step)
        .groupBy(*_STEP, "purgatory")
        .agg(
            *(F.sum(name).alias(name) for name in ("checks", "tried", "completed")),
            *(F.max(name).alias(name) for name in ("tried_p50", "tried_p99", "tried_max")),
        )
    )


def gaps_in_steps(gaps: DataFrame, step: int) -> DataFrame:
    """Which steps are incomplete, and how many of their minutes."""
    return _stepped(gaps, step).groupBy(*_STEP).agg(F.count("*").alias("incomplete_minutes"))


def pending_in_steps(pending: DataFrame, step: int) -> DataFrame:
    """How many were pending at most (``pending_max``), and on average by time (``pending_mean``).

    Also in the steps between two minutes in which nothing changed.
    """
    minute_us = F.unix_micros("minute")
    until_us = minute_us + _MINUTE_US
    following = F.lead(minute_us).over(Window.partitionBy(*_SERIES).orderBy("minute"))
    changing = _stretch(minute_us, until_us, F.col("pending_max"), F.col("pending_mean"))
    quiet = _stretch(until_us, F.coalesce(following, until_us), F.col("pending_last"), F.col("pending_last"))
    stretches = (
        pending.withColumn("stretches", F.array(changing, quiet))
        .select(*_SERIES, F.inline("stretches"))
        .where("from_us < to_us")
    )
    step_us = step * _MINUTE_US
    start = _start_us(F.col("from_us"), step_us)
    touched = F.sequence(start, _start_us(F.col("to_us") - 1, step_us), F.lit(step_us))
    share = F.least("to_us", F.col("start_us") + step_us) - F.greatest("from_us", "start_us")
    return (
        stretches.withColumn("start_us", F.explode(touched))
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


def _stretch(since_us: Column, until_us: Column, most: Column, mean: Column) -> Column:
    return F.struct(
        since_us.alias("from_us"),
        until_us.alias("to_us"),
        most.alias("most"),
        mean.cast("double").alias("mean"),
    )
