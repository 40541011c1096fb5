"""The fan-out of checks: how many operations a check of a key tries."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.transforms.instants import minute_of
from purgatory.pipeline.transforms.quantiles import binned, quantiles


def fan_out(checks: DataFrame) -> DataFrame:
    """One row for each minute and purgatory in which a key was checked.

    Columns: the number of ``checks``; the operations that they ``tried`` and ``completed`` in all; quantiles
    of the operations that one check tried, with the precision of `binned`; their maximum ``tried_max``; and
    the instants of the first check, ``first_us``, and the last, ``last_us``.
    """
    by_bin = checks.groupBy(
        minute_of(F.col("checked")).alias("minute"), "purgatory", binned(F.col("tried")).alias("fan_out")
    ).agg(
        F.count("*").alias("checks"),
        F.sum("tried").alias("tried"),
        F.sum("completed").alias("completed"),
        F.max("tried").alias("tried_max"),
        F.min(F.unix_micros("checked")).alias("first_us"),
        F.max(F.unix_micros("checked")).alias("last_us"),
    )
    return by_bin.groupBy("minute", "purgatory").agg(
        F.sum("checks").alias("checks"),
        F.sum("tried").alias("tried"),
        F.sum("completed").alias("completed"),
        *quantiles(F.col("fan_out"), counts=F.col("checks"), named={"tried_p50": 0.5, "tried_p99": 0.99}),
        F.max("tried_max").alias("tried_max"),
        F.min("first_us").alias("first_us"),
        F.max("last_us").alias("last_us"),
    )
