"""The tables that `compact` fills. `purgatory.journal.schema` explains the columns that come from a journal.

A frame that is read has these columns in this order. Spark treats every column of a file as nullable. But
`compact` makes sure that a column has no nulls unless it is declared as nullable here.
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
    TimestampType,
)

from purgatory.journal import schema

OPERATION_COLUMNS: Final = from_arrow_schema(schema.OPERATIONS_SCHEMA)
CHECK_COLUMNS: Final = from_arrow_schema(schema.CHECKS_SCHEMA)
GAP_COLUMNS: Final = from_arrow_schema(schema.GAPS_SCHEMA)

# The day in UTC when an operation started, a key was checked, or a gap began.
_DATE: Final = StructField("date", DateType(), nullable=False)
COMPACTED_OPERATIONS: Final = StructType([*OPERATION_COLUMNS, _DATE])
COMPACTED_CHECKS: Final = StructType([*CHECK_COLUMNS, _DATE])
COMPACTED_GAPS: Final = StructType([*GAP_COLUMNS, _DATE])

# The table of the journal.
_TABLE: Final = StructField("table", StringType(), nullable=False)
# The number of the batch; see `batches`.
_BATCH: Final = StructField("batch", LongType(), nullable=False)

# The rows that were refused.
QUARANTINE: Final = StructType(
    [
        # The path of the file.
        StructField("source", StringType(), nullable=False),
        # The number of the row in the file, from 0.
        StructField("position", LongType(), nullable=False),
        StructField("reason", StringType(), nullable=False),
        # The row as JSON.
        StructField("row", StringType(), nullable=False),
        _TABLE,
        _BATCH,
    ]
)

# One row for each reading of a file. If the file could be read, rows = kept + duplicates + quarantined.
SEGMENTS: Final = StructType(
    [
        _TABLE,
        # The name, the path, the size in bytes and the time of the last change of the file, before it was
        # read. Bytes of a path that are not UTF-8 are escaped.
        StructField("name", StringType(), nullable=False),
        StructField("source", StringType(), nullable=False),
        StructField("size", LongType(), nullable=False),
        StructField("modified", TimestampType(), nullable=False),
        # Null if the file could not be read.
        StructField("rows", LongType(), nullable=True),
        StructField("kept", LongType(), nullable=False),
        StructField("duplicates", LongType(), nullable=False),
        StructField("quarantined", LongType(), nullable=False),
        # Why the file could not be read; null if it could.
        StructField("reason", StringType(), nullable=True),
        _BATCH,
        # The digest of the bytes that were read; see `listing.digest_of`. Null if the file could not be read,
        # or if a version of purgatory without this column has read it.
        StructField("digest", StringType(), nullable=True),
    ]
)
# The columns of SEGMENTS that count rows.
ROW_COUNTS: Final = ("rows", "kept", "duplicates", "quarantined")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a journal, and how a dataset stores it."""

    name: str
    # The columns in a segment, and in the dataset.
    recorded: StructType
    compacted: StructType
    # The column that the date is taken from.
    instant: str
    # The order of the rows in a file, which has the rows of one date.
    order_by: tuple[str, ...]
    # The columns that identify a row; empty if rows have no identity.
    identity: tuple[str, ...] = ()


# Duplicates have the same start, and so the same date. Only that date is searched for duplicates.
OPERATIONS_TABLE: Final = Table(
    schema.OPERATIONS,
    OPERATION_COLUMNS,
    COMPACTED_OPERATIONS,
    instant="started",
    order_by=("kind", "started"),
    identity=("date", "node", "purgatory", "operation_id"),
)
CHECKS_TABLE: Final = Table(
    schema.CHECKS, CHECK_COLUMNS, COMPACTED_CHECKS, instant="checked", order_by=("checked",)
)
GAPS_TABLE: Final = Table(schema.GAPS, GAP_COLUMNS, COMPACTED_GAPS, instant="began", order_by=("began",))

TABLES: Final = (OPERATIONS_TABLE, CHECKS_TABLE, GAPS_TABLE)
