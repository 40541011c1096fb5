"""Removes rows that are duplicates of other rows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def without_duplicates(rows: DataFrame, known: DataFrame, identity: Sequence[str]) -> DataFrame:
    """Keep the first row of each identity by (source, position), unless `known` has the identity."""
    copies = Window.partitionBy(*identity).orderBy("source", "position")
    return (
        rows.withColumn("_copy", F.row_number().over(copies))
        .where(F.col("_copy") == 1)
        .join(known.select(*identity), list(identity), "left_anti")
        .select(*rows.columns)
    )


def new_identities(rows: DataFrame, known: DataFrame, identity: Sequence[str]) -> DataFrame:
    """The identities of `rows` that are not in `known`.

    They are as many as the rows of `without_duplicates`, but computed without sorting the rows.
    """
    return rows.select(*identity).distinct().join(known.select(*identity), list(identity), "left_anti")
