"""What the reaper would have had to do with other ticks and wheels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from purgatory.pipeline.transforms.reaper import Setting, Stretch
from purgatory.pipeline.transforms.wheel_waits import WHEEL, gone

# Stretches are few, and parts have as many as chance gives them.
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
        # So many expired so late. A row with one has no other work: that is in one row of each stretch.
        pa.field("lateness_us", pa.int64()),
        pa.field("expired", pa.int64()),
    ]
)


def replayed(waits: DataFrame, stretches: DataFrame, settings: Sequence[Setting]) -> DataFrame:
    """Drive the real wheel through each of the `stretches`, with each of the settings.

    Several rows for each, that add up; see `measured`. It is Python that does it, at some microseconds for
    each wait and setting, and with a stretch for the unit of work.
    """
    coarsest_us = max(setting.tick_us for setting in settings)
    group = (*WHEEL, "since_us", "until_us")
    parts = _PARTS_PER_CORE * waits.sparkSession.sparkContext.defaultParallelism
    return (
        waits.join(F.broadcast(stretches), list(WHEEL))
        .where((F.col("entered_us") < F.col("until_us")) & (gone(coarsest_us) > F.col("since_us")))
        # By number: else Spark, which sees few rows, gives them all to one task.
        .repartition(parts, *group)
        .groupBy(*group)
        .applyInArrow(replay(settings), from_arrow_schema(_WORK))
    )


def replay(settings: Sequence[Setting]) -> Callable[[pa.Table], pa.Table]:
    """What `replayed` has the workers do with the waits of a stretch."""

    def replay_stretch(waits: pa.Table) -> pa.Table:
        purgatory, since, until = (
            waits.column(name)[0].as_py() for name in ("purgatory", "since_us", "until_us")
        )
        times = (waits.column(name).to_pylist() for name in ("entered_us", "deadline_us", "left_us"))
        stretch = Stretch(list(zip(*times, strict=True)), since, until)
        rows: list[tuple[object, ...]] = []
        for setting in settings:
            work = stretch.replayed(setting)
            stratum = (purgatory, setting.tick_us, setting.wheel_size, since, stretch.end)
            done = (stretch.begun, work.wakeups, work.moves, work.fullest_slot, work.levels)
            rows.append((*stratum, *done, None, 0))
            rows += ((*stratum, 0, 0, 0, 0, 0, *late) for late in work.lateness.items())
        columns = zip(zip(*rows, strict=True), _WORK, strict=True)
        return pa.Table.from_arrays([pa.array(column, field.type) for column, field in columns], schema=_WORK)

    return replay_stretch


def measured(replayed: DataFrame) -> DataFrame:
    """A row for each purgatory, ``tick_us`` and ``wheel_size``, of all nodes together.

    ``since``, ``until``
        what was replayed
    ``operations``
        that were put on the wheel in that time
    ``wakeups``
        of the reaper
    ``moves``
        of an operation from a slot of a higher level to one of a lower level
    ``fullest_slot``
        the most that a slot held at a time
    ``levels``
        of the wheel
    ``expired``
        operations whose timeout expired
    ``lateness_mean_us``, ``lateness_p99_us``, ``lateness_max_us``
        how much later they did, since deadlines are rounded up to a tick; null where none did
    ``pareto``
        whether no other setting is better: has as few wake-ups and moves, and as little lateness (p99; one
        tick, where nothing expired), and less of one. Of equal ones it is the smallest wheel.
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
