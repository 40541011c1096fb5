"""Of whom there is something to say: each kind of operation, and each hot key of a kind."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def of_kinds_and_keys(operations: DataFrame, keys: DataFrame) -> DataFrame:
    """Give each operation a `subject`, once for its kind and once more for each of its keys that is hot.

    `keys`, the hot ones, are few, and have the columns purgatory and key. A subject is a struct of purgatory,
    kind and key; the key of a kind as a whole is null. (Within a struct nulls are equal, so subjects can be
    joined.)
    """
    of_kinds = operations.withColumn("key", F.lit(None).cast("string"))
    of_keys = operations.withColumn("key", F.explode(F.array_distinct("keys"))).join(
        F.broadcast(keys), ["purgatory", "key"]
    )
    return with_subject(of_kinds.unionByName(of_keys))


def with_subject(frame: DataFrame) -> DataFrame:
    """The frame with one column `subject` for its purgatory, kind and key."""
    return frame.withColumn("subject", F.struct("purgatory", "kind", "key")).drop("purgatory", "kind", "key")


def flattened(frame: DataFrame) -> DataFrame:
    """The frame with purgatory, kind and key for its `subject`."""
    return frame.select("subject.*", *(column for column in frame.columns if column != "subject"))
