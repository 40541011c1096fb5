"""Replays recorded waits with other ticks and wheel sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from purgatory.pipeline.replay.reaper import ReplayInterval, Setting
from purgatory.pipeline.replay.wheel_waits import WHEEL, off_the_wheel

# Intervals are few and spread at random, so several partitions for each core balance the load.
_PARTS_PER_CORE: Final = 4

_WORK: Final = pa.schema(
    [
        pa.field("purgatory", pa.string()),
        pa.field("tick_us", pa.int64()),
        pa.field("wheel_size", pa.int64()),
        pa.field("since_us", pa.int64()),
        pa.field("until_us", pa.int64()),
        pa.field("operations", pa.int64()),
        pa.field("wakeups", pa.int64()),
        pa.field("moves", pa.int64()),
        pa.field("fullest_slot", pa.int64()),
        pa.field("levels", pa.int64()),
        # A lateness, and the number of operations that expired this late. Rows with a lateness have no other
        # work. The other work is in one more row for each interval and setting.
        pa.field("lateness_us", pa.int64()),
        pa.field("expired", pa.int64()),
    ]
)


def replayed(waits: DataFrame, intervals: DataFrame, settings: Sequence[Setting]) -> DataFrame:
    """Replay each of the `intervals` on a timing wheel, with each of the settings.

    Gives several rows for each interval and setting, which `by_setting` adds up. Runs in Python, at some
    microseconds for each wait and setting. One task processes an interval.
    """
    coarsest_us = max(setting.tick_us for setting in settings)
    group = (*WHEEL, "since_us", "until_us")
    parts = _PARTS_PER_CORE * waits.sparkSession.sparkContext.defaultParallelism
    return (
        waits.join(F.broadcast(intervals), list(WHEEL))
        .where((F.col("entered_us") < F.col("until_us")) & (off_the_wheel(coarsest_us) > F.col("since_us")))
        # The number of partitions is given, because by default Spark gives so few rows to one task.
        .repartition(parts, *group)
        .groupBy(*group)
        .applyInArrow(replay(settings), from_arrow_schema(_WORK))
    )


def replay(settings: Sequence[Setting]) -> Callable[[pa.Table], pa.Table]:
    """The part of `replayed` that runs in the workers, with the waits of one interval."""

    def replay_interval(waits: pa.Table) -> pa.Table:
        purgatory, since, until = (
            waits.column(name)[0].as_py() for name in ("purgatory", "since_us", "until_us")
        )
        times = (waits.column(name).to_pylist() for name in ("entered_us", "deadline_us", "left_us"))
        interval = ReplayInterval(list(zip(*times, strict=True)), since, until)
        rows: list[tuple[object, ...]] = []
        for setting in settings:
            work = interval.replayed(setting)
            identity = (purgatory, setting.tick_us, setting.wheel_size, since, interval.end)
            done = (interval.begun, work.wakeups, work.moves, work.fullest_slot, work.levels)
            rows.append((*identity, *done, None, 0))
            rows += ((*identity, 0, 0, 0, 0, 0, *late) for late in work.lateness.items())
        columns = zip(zip(*rows, strict=True), _WORK, strict=True)
        return pa.Table.from_arrays([pa.array(column, field.type) for column, field in columns], schema=_WORK)

    return replay_interval


def by_setting(replayed: DataFrame) -> DataFrame:
    """One row for each purgatory, ``tick_us`` and ``wheel_size``. Adds up all nodes and intervals.

    ``since``, ``until``
        the time that was replayed
    ``operations``
        the number of operations that were added to the wheel in that time
    ``wakeups``
        the wake-ups of the reaper
    ``moves``
        how often an operation moved from a slot of a higher level to one of a lower level
    ``fullest_slot``
        the most operations that a slot held at a time
    ``levels``
        the levels of the wheel
    ``expired``
        the operations whose timeout expired
    ``lateness_mean_us``, ``lateness_p99_us``, ``lateness_max_us``
        the lateness of these operations, which comes from rounding deadlines up to a tick; null if none
        expired
    ``pareto``
        whether no other setting is better. A setting is better if it has no more work (wake-ups and moves)
        and no more lateness (p99, or one tick if none expired), and less work or less lateness. If settings
        are equal, the setting with the smallest wheel is in the set.
    """
    expired = F.sum("expired")
    measures = replayed.groupBy("purgatory", "tick_us", "wheel_size").agg(
        F.timestamp_micros(F.min("since_us")).alias("since"),
        F.timestamp_micros(F.max("until_us")).alias("until"),
        *(F.sum(name).alias(name) for name in ("operations", "wakeups", "moves")),
        *(F.max(name).alias(name) for name in ("fullest_slot", "levels")),
        expired.alias("expired"),
        F.try_divide(F.sum(F.col("lateness_us") * F.col("expired")), expired).alias("lateness_mean_us"),
        F.percentile("lateness_us", 0.99, F.col("expired")).alias("lateness_p99_us"),
        F.max("lateness_us").alias("lateness_max_us"),
    )
    work = F.col("wakeups") + F.col("moves")
    late = F.coalesce("lateness_p99_us", "tick_us")
    no_later = (
        Window.partitionBy("purgatory")
        .orderBy(late, work, "wheel_size", "tick_us")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    return measures.withColumn("pareto", F.coalesce(work < F.min(work).over(no_later), F.lit(True)))
