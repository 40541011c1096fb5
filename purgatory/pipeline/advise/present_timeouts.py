"""The timeouts that the recorded operations had."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def present_timeouts(operations: DataFrame, *, up_to: int) -> DataFrame:
    """The most frequent timeouts of each stratum, ranked from 1, with the number of their ``operations``.

    Reads ``stratum`` (of any type) and ``timeout_us``, which is null for operations that never expire. If
    timeouts are equally frequent, the longest timeout comes first.
    """
    counted = operations.groupBy("stratum", "timeout_us").agg(F.count("*").alias("operations"))
    # With the row number instead of the rank, Spark drops most rows before it shuffles.
    ranking = Window.partitionBy("stratum").orderBy(F.desc("operations"), F.desc_nulls_first("timeout_us"))
    return counted.withColumn("rank", F.row_number().over(ranking)).where(F.col("rank") <= up_to)
