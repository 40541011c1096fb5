"""The keys with the most operations, waiting time, and wasted tries."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from purgatory.journal.schema import COMPLETED
from purgatory.pipeline.summarize.condensation import Part

# For each key: its operations, the time that they waited, and their tries that did not complete them.
MEASURES: Final = ("operations", "waited_us", "wasted_tries")


def _counted(operations: pa.Table) -> pa.Table:
    """The measures of each key of the operations."""
    keys = operations["keys"].combine_chunks()
    pairs = pa.table({"operation": pc.list_parent_indices(keys), "key": pc.list_flatten(keys)})
    if (pc.max(pc.list_value_length(keys)).as_py() or 0) > 1:
        # A key that an operation has twice counts once.
        pairs = pairs.group_by(["operation", "key"], use_threads=False).aggregate([])
    completed = pc.equal(operations["outcome"], COMPLETED).cast(pa.int32())
    wasted = pc.subtract(operations["tries"], completed)
    of_operation = pairs["operation"]
    counted = pa.table(
        {
            "purgatory": operations["purgatory"].take(of_operation),
            "key": pairs["key"],
            "waited_us": operations["waited_us"].take(of_operation),
            "wasted_tries": wasted.take(of_operation),
        }
    ).group_by(["purgatory", "key"], use_threads=False)
    return counted.aggregate(
        [([], "count_all"), ("waited_us", "sum"), ("wasted_tries", "sum")]
    ).rename_columns(
        {"count_all": "operations", "waited_us_sum": "waited_us", "wasted_tries_sum": "wasted_tries"}
    )


KEYS: Final = Part(
    "keys",
    ("purgatory", "keys", "waited_us", "tries", "outcome"),
    pa.schema(
        [
            ("purgatory", pa.string()),
            ("key", pa.string()),
            ("operations", pa.int64()),
            ("waited_us", pa.int64()),
            ("wasted_tries", pa.int64()),
        ]
    ),
    _counted,
)


def hottest_keys(keys: DataFrame, *, up_to: int) -> DataFrame:
    """The keys with the highest values of each measure (``by``) in each purgatory, ranked from 1.

    Made of the part `KEYS`. An operation counts in full for each of its keys. Ties are ranked by the name of
    the key. A key with a value of 0 is not ranked.
    """
    by_key = keys.groupBy("purgatory", "key").agg(*(F.sum(measure).alias(measure) for measure in MEASURES))
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
