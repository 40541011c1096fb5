"""Of whom there is something to say: each kind of operation, and each hot key of a kind."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def of_kinds_and_keys(operations: DataFrame, keys: DataFrame) -> DataFrame:
    """Give each operation a `stratum`, once for its kind and once more for each of its keys that is hot.

    `keys`, the hot ones, are few, and have the columns purgatory and key. A stratum is a struct of purgatory,
    kind and key; the key of a kind as a whole is null. (Within a struct nulls are equal, so strata can be
    joined.)
    """
    of_kinds = operations.withColumn("key", F.lit(None).cast("string"))
    of_keys = operations.withColumn("key", F.explode(F.array_distinct("keys"))).join(
        F.broadcast(keys), ["purgatory", "key"]
    )
    return with_stratum(of_kinds.unionByName(of_keys))


def with_stratum(frame: DataFrame) -> DataFrame:
    """The frame with one column `stratum` for its purgatory, kind and key."""
    return frame.withColumn("stratum", F.struct("purgatory", "kind", "key")).drop("purgatory", "kind", "key")


def flattened(frame: DataFrame) -> DataFrame:
    """The frame with purgatory, kind and key for its `stratum`."""
    return frame.select("stratum.*", *(column for column in frame.columns if column != "stratum"))
