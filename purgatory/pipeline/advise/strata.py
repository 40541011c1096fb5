"""Strata: groups of operations that are analysed separately: the kinds, and the hot keys of each kind."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def with_strata(operations: DataFrame, keys: DataFrame) -> DataFrame:
    """Repeat each operation for each stratum that it belongs to: its kind, and its hot keys.

    `keys` are the hot keys, with the columns purgatory and key; they are few. A ``stratum`` is a struct of
    purgatory, kind and key; the key is null for the whole kind. (Within a struct, nulls are equal, so strata
    can be joined.)
    """
    of_kinds = operations.withColumn("key", F.lit(None).cast("string"))
    of_keys = operations.withColumn("key", F.explode(F.array_distinct("keys"))).join(
        F.broadcast(keys), ["purgatory", "key"]
    )
    return with_stratum(of_kinds.unionByName(of_keys))


def with_stratum(frame: DataFrame) -> DataFrame:
    """Replace the columns purgatory, kind and key by one column ``stratum``."""
    return frame.withColumn("stratum", F.struct("purgatory", "kind", "key")).drop("purgatory", "kind", "key")


def flattened(frame: DataFrame) -> DataFrame:
    """Replace the column ``stratum`` by the columns purgatory, kind and key."""
    return frame.select("stratum.*", *(column for column in frame.columns if column != "stratum"))
