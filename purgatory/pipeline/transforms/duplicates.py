"""Finds rows that are duplicates of other rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from purgatory.pipeline.exchange import Part, gather, hashes
from purgatory.pipeline.schemas import Table

_HASH: Final = "hash"


def has_duplicates(context: SparkContext, table: Table, paths: Sequence[str]) -> bool:
    """Whether two rows in these files of a table have the same identity.

    Compares hashes of 64 bits instead of the identities. So False is certain, and True is wrong in one of
    360,000 cases with ten million rows.
    """
    # The date in an identity is made of the instant.
    columns = (table.instant, *(name for name in table.identity if name != "date"))
    part = Part(table.name, table.name, columns, partial(_hashed, table), group=(_HASH,), merge=_counted)
    counts = gather(context, {table.name: paths}, [part])[table.name]
    return bool(pc.sum(counts["distinct"]).as_py() < pc.sum(counts["rows"]).as_py())


def _hashed(table: Table, rows: pa.Table) -> pa.Table:
    days = rows[table.instant].cast(pa.date32()).cast(pa.int32())
    identity = rows.set_column(rows.schema.get_field_index(table.instant), "date", days)
    return pa.table({_HASH: hashes(identity)})


def _counted(hashed: pa.Table) -> pa.Table:
    """The numbers of rows and of distinct hashes. No other task has these hashes."""
    return pa.table({"rows": [hashed.num_rows], "distinct": [len(np.unique(hashed[_HASH].to_numpy()))]})


def duplicates(rows: DataFrame, known: DataFrame, identity: Sequence[str]) -> DataFrame:
    """The ``source`` and ``position`` of the rows that are duplicates.

    A row is a duplicate if its identity is in `known`, or if another row with its identity comes before it
    by source and position. The identities in `known` are distinct.
    """
    copies = Window.partitionBy(*identity).orderBy("source", "position")
    marked = known.select(*identity, F.lit(True).alias("_known"))
    return (
        rows.withColumn("_copy", F.row_number().over(copies))
        .join(marked, list(identity), "left")
        .where((F.col("_copy") > 1) | F.col("_known"))
        .select("source", "position")
    )


def new_identities(rows: DataFrame, known: DataFrame, identity: Sequence[str]) -> DataFrame:
    """The distinct identities of `rows` that are not in `known`: one for each row that is no duplicate."""
    return rows.select(*identity).distinct().join(known.select(*identity), list(identity), "left_anti")
