"""The tables of the pipeline. Those of a journal have their units in `purgatory.journal.schema`.

A frame that was read has these columns in this order; that none is null where it may not be is what `compact`
sees to, since Spark takes every column of a file for nullable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    DateType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from purgatory.journal import schema

OPERATIONS: Final = from_arrow_schema(schema.OPERATIONS_SCHEMA)
CHECKS: Final = from_arrow_schema(schema.CHECKS_SCHEMA)
GAPS: Final = from_arrow_schema(schema.GAPS_SCHEMA)

# The day in UTC, of when an operation started, a key was checked, a gap began.
_DATE: Final = StructField("date", DateType(), nullable=False)
COMPACTED_OPERATIONS: Final = StructType([*OPERATIONS, _DATE])
COMPACTED_CHECKS: Final = StructType([*CHECKS, _DATE])
COMPACTED_GAPS: Final = StructType([*GAPS, _DATE])

# Which run of which table a row came with; see `transforms.commits`.
BATCH: Final = StructField("batch", LongType(), nullable=False)
_TABLE: Final = StructField("table", StringType(), nullable=False)

QUARANTINE: Final = StructType(
    [
        # The file, as Spark names it.
        StructField("source", StringType(), nullable=False),
        # Which of its rows, from 0; null where the file could not be read.
        StructField("position", LongType(), nullable=True),
        StructField("reason", StringType(), nullable=False),
        # The row, as JSON; null where the file could not be read.
        StructField("row", StringType(), nullable=True),
        _TABLE,
        BATCH,
    ]
)

# What became of the segments of one batch: rows = kept + duplicates + quarantined.
COMMITS: Final = StructType(
    [
        StructField("files", LongType(), nullable=False),
        # Of these; they count for no rows.
        StructField("unreadable_files", LongType(), nullable=False),
        StructField("rows", LongType(), nullable=False),
        StructField("kept", LongType(), nullable=False),
        StructField("duplicates", LongType(), nullable=False),
        StructField("quarantined", LongType(), nullable=False),
        _TABLE,
        BATCH,
    ]
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a journal, and how it is kept."""

    name: str
    # In a segment, and in the dataset.
    recorded: StructType
    compacted: StructType
    # The column that has its date.
    instant: str
    # Columns that have a directory each, above that of the batch.
    partitions: tuple[str, ...]
    # What two rows have in common only if they are one; empty where rows do not say.
    identity: tuple[str, ...] = ()


# An operation has one start. So what is the same operation is on the same date, and no other is searched.
OPERATIONS_TABLE: Final = Table(
    schema.OPERATIONS,
    OPERATIONS,
    COMPACTED_OPERATIONS,
    instant="started",
    partitions=("date", "kind"),
    identity=("date", "node", "purgatory", "operation_id"),
)
CHECKS_TABLE: Final = Table(schema.CHECKS, CHECKS, COMPACTED_CHECKS, instant="checked", partitions=("date",))
GAPS_TABLE: Final = Table(schema.GAPS, GAPS, COMPACTED_GAPS, instant="began", partitions=("date",))

TABLES: Final = (OPERATIONS_TABLE, CHECKS_TABLE, GAPS_TABLE)
