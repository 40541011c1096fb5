"""Outcomes, waits, lateness and tries of the operations that ended in each minute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from purgatory._statistics import OUTCOMES
from purgatory.pipeline.summarize.condensation import Part
from purgatory.pipeline.transforms.instants import MINUTE_US, ended_us
from purgatory.pipeline.transforms.quantiles import bins, quantiles

_GROUP: Final = ("minute", "purgatory", "kind")
_WAITS: Final = {"wait_p50_us": 0.5, "wait_p90_us": 0.9, "wait_p99_us": 0.99, "wait_p999_us": 0.999}
# Operations that are counted together.
_ALIKE: Final = ["minute_us", "purgatory", "kind", "outcome", "waited_us", "lateness_us"]


def _counted(operations: pa.Table) -> pa.Table:
    """How many operations are alike, and the sum of their tries."""
    ended = ended_us(operations)
    late = operations["lateness_us"]
    binned = {
        "minute_us": pa.array(ended - ended % MINUTE_US),
        "waited_us": pa.array(bins(operations["waited_us"].to_numpy())),
        "lateness_us": pa.array(bins(pc.fill_null(late, 0).to_numpy()), mask=pc.is_null(late).to_numpy()),
    }
    others = {name: operations[name] for name in ("purgatory", "kind", "outcome", "tries")}
    counted = pa.table(binned | others).group_by(_ALIKE, use_threads=False)
    return counted.aggregate([([], "count_all"), ("tries", "sum")]).rename_columns(
        {"count_all": "operations", "tries_sum": "tries"}
    )


COUNTED: Final = Part(
    "counted",
    ("purgatory", "kind", "outcome", "started", "waited_us", "lateness_us", "tries"),
    pa.schema(
        [
            ("minute_us", pa.int64()),
            ("purgatory", pa.string()),
            ("kind", pa.string()),
            ("outcome", pa.string()),
            ("waited_us", pa.int64()),
            ("lateness_us", pa.int64()),
            ("operations", pa.int64()),
            ("tries", pa.int64()),
        ]
    ),
    _counted,
)


def minutes(counted: DataFrame) -> DataFrame:
    """One row for each minute, purgatory and kind in which an operation ended, from the part `COUNTED`.

    Columns: the number of ``operations``; their number by outcome (``completed``, …); quantiles of their
    waits, whatever the outcome, and of their lateness if they have one, in microseconds, with the precision
    of `bins`; and ``tries_per_operation``.
    """
    by_minute = counted.withColumn("minute", F.timestamp_micros("minute_us")).groupBy(*_GROUP)
    return by_minute.agg(*measures(F.col("operations")))


def measures(count: Column) -> Sequence[Column]:
    """The aggregates of `minutes`. A row has binned waits, and stands for `count` operations.

    Its ``tries`` are those of all these operations.
    """
    return [
        F.sum(count).alias("operations"),
        *(
            F.sum(F.when(F.col("outcome") == outcome, count).otherwise(0)).alias(outcome)
            for outcome in OUTCOMES
        ),
        *quantiles(F.col("waited_us"), counts=count, named=_WAITS),
        *quantiles(F.col("lateness_us"), counts=count, named={"lateness_p99_us": 0.99}),
        (F.sum("tries") / F.sum(count)).alias("tries_per_operation"),
    ]
