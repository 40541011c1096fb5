"""The tables of a dataset. `purgatory.journal.schema` explains the columns that come from a journal.

Frames that are read have these columns in this order. Spark takes every column of a file for nullable; that
the others have no nulls is ensured by `compact`.
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

# The day in UTC when an operation started, a key was checked, or a gap began.
_DATE: Final = StructField("date", DateType(), nullable=False)
COMPACTED_OPERATIONS: Final = StructType([*OPERATIONS, _DATE])
COMPACTED_CHECKS: Final = StructType([*CHECKS, _DATE])
COMPACTED_GAPS: Final = StructType([*GAPS, _DATE])

# The number of the batch that a row came with; see `compaction`.
BATCH: Final = StructField("batch", LongType(), nullable=False)
_TABLE: Final = StructField("table", StringType(), nullable=False)

QUARANTINE: Final = StructType(
    [
        # The path of the file, as Spark gives it.
        StructField("source", StringType(), nullable=False),
        # The number of the row in the file, from 0; null if the file could not be read.
        StructField("position", LongType(), nullable=True),
        StructField("reason", StringType(), nullable=False),
        # The row as JSON; null if the file could not be read.
        StructField("row", StringType(), nullable=True),
        _TABLE,
        BATCH,
    ]
)

# The counts of one batch: rows = kept + duplicates + quarantined.
COMMITS: Final = StructType(
    [
        StructField("files", LongType(), nullable=False),
        # Those of the files that could not be read. Their rows are unknown, and not counted.
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
    """A table of a journal, and how a dataset stores it."""

    name: str
    # The columns in a segment, and in the dataset.
    recorded: StructType
    compacted: StructType
    # The column that the date is taken from.
    instant: str
    # The columns whose values are directories, above that of the batch.
    partitions: tuple[str, ...]
    # The columns that identify a row; empty if rows have no identity.
    identity: tuple[str, ...] = ()


# An operation has one start, so duplicates have the same date, and only that date is searched for them.
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
