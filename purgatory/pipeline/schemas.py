"""The tables that `compact` fills. `purgatory.journal.schema` explains the columns that come from a journal.

A column has no nulls unless it is declared as nullable here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from purgatory.journal import schema

# The table of the journal.
_TABLE: Final = pa.field("table", pa.string(), nullable=False)
# The number of the batch; see `batches`.
_BATCH: Final = pa.field("batch", pa.int64(), nullable=False)

# The rows that were refused.
QUARANTINE: Final = pa.schema(
    [
        # The path of the file.
        pa.field("source", pa.string(), nullable=False),
        # The number of the row in the file, from 0.
        pa.field("position", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        # The row as JSON.
        pa.field("row", pa.string(), nullable=False),
        _TABLE,
        _BATCH,
    ]
)

# One row for each reading of a file. If the file could be read, rows = kept + duplicates + quarantined.
SEGMENTS: Final = pa.schema(
    [
        _TABLE,
        # The name, the path, the size in bytes and the time of the last change of the file, before it was
        # read. Bytes of a path that are not UTF-8 are escaped.
        pa.field("name", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("modified", pa.timestamp("us", "UTC"), nullable=False),
        # Null if the file could not be read.
        pa.field("rows", pa.int64()),
        pa.field("kept", pa.int64(), nullable=False),
        pa.field("duplicates", pa.int64(), nullable=False),
        pa.field("quarantined", pa.int64(), nullable=False),
        # Why the file could not be read; null if it could.
        pa.field("reason", pa.string()),
        _BATCH,
        # The digest of the bytes that were read; see `listing.digest_of`. Null if the file could not be read,
        # or if a version of purgatory without this column has read it.
        pa.field("digest", pa.string()),
    ]
)
# The columns of SEGMENTS that count rows.
ROW_COUNTS: Final = ("rows", "kept", "duplicates", "quarantined")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a journal, and how a dataset stores it."""

    name: str
    # The column that the date is taken from.
    instant: str
    # The order of the rows in a file, which has the rows of one date.
    order_by: tuple[str, ...]
    # The columns that identify a row; empty if rows have no identity.
    identity: tuple[str, ...] = ()

    @property
    def columns(self) -> pa.Schema:
        """The columns of the journal, and the day in UTC when a row's instant was."""
        return schema.SCHEMAS[self.name].append(pa.field("date", pa.date32(), nullable=False))


# Duplicates have the same start, and so the same date. Only that date is searched for duplicates.
OPERATIONS_TABLE: Final = Table(
    schema.OPERATIONS,
    instant="started",
    order_by=("kind", "started"),
    identity=("date", "node", "purgatory", "operation_id"),
)
CHECKS_TABLE: Final = Table(schema.CHECKS, instant="checked", order_by=("checked",))
GAPS_TABLE: Final = Table(schema.GAPS, instant="began", order_by=("began",))

TABLES: Final = (OPERATIONS_TABLE, CHECKS_TABLE, GAPS_TABLE)
