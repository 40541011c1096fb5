"""The same row twice."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def without_duplicates(rows: DataFrame, known: DataFrame, identity: Sequence[str]) -> DataFrame:
    """Of `rows` with the same identity the first by (source, position), and none that `known` has as well."""
    copies = Window.partitionBy(*identity).orderBy("source", "position")
    return (
        rows.withColumn("_copy", F.row_number().over(copies))
        .where(F.col("_copy") == 1)
        .join(known.select(*identity), list(identity), "left_anti")
        .select(*rows.columns)
    )


def new_identities(rows: DataFrame, known: DataFrame, identity: Sequence[str]) -> DataFrame:
    """Those of `rows` that `known` has not: as many as `without_duplicates` has rows, found another way."""
    return rows.select(*identity).distinct().join(known.select(*identity), list(identity), "left_anti")
