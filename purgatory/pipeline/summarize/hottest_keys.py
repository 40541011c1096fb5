"""The keys with the most operations, waiting time, and wasted tries."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from purgatory.journal.schema import COMPLETED

# For each key: its operations, the time that they waited, and their tries that did not complete them.
MEASURES: Final = ("operations", "waited_us", "wasted_tries")


def hottest_keys(operations: DataFrame, *, up_to: int) -> DataFrame:
    """The keys with the highest values of each measure (``by``) in each purgatory, ranked from 1.

    An operation counts in full for each of its keys. Ties are ranked by the name of the key. A key with a
    value of 0 is not ranked.
    """
    wasted = F.col("tries") - (F.col("outcome") == COMPLETED).cast("int")
    by_key = (
        operations.select(
            "purgatory",
            F.explode(F.array_distinct("keys")).alias("key"),
            "waited_us",
            wasted.alias("wasted_tries"),
        )
        .groupBy("purgatory", "key")
        .agg(
            F.count("*").alias("operations"),
            F.sum("waited_us").alias("waited_us"),
            F.sum("wasted_tries").alias("wasted_tries"),
        )
    )
    measured = by_key.withColumn("by", F.explode(F.array(*(F.lit(measure) for measure in MEASURES))))
    amount = F.coalesce(*(F.when(F.col("by") == measure, F.col(measure)) for measure in MEASURES))
    # With the row number instead of the rank, Spark drops most rows before it shuffles.
    ranking = Window.partitionBy("purgatory", "by").orderBy(F.desc("amount"), "key")
    return (
        measured.withColumn("amount", amount)
        .where("amount > 0")
        .withColumn("rank", F.row_number().over(ranking))
        .where(F.col("rank") <= up_to)
        .select("purgatory", "by", "rank", "key", *MEASURES)
    )
