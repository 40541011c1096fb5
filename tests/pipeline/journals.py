"""Rows and segments of journals, with any content a test needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS, SCHEMAS

Row = dict[str, Any]

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)

# One valid row of each table.
ROWS: Final[dict[str, Row]] = {
    OPERATIONS: {
        "node": "a",
        "purgatory": "fetch",
        "operation_id": 1,
        "kind": "Fetch",
        "keys": ["k"],
        "started": NOON,
        "timeout_us": 500,
        "waited_us": 600,
        "lateness_us": 100,
        "outcome": "expired",
        "tries": 1,
    },
    CHECKS: {"node": "a", "purgatory": "fetch", "key": "k", "checked": NOON, "tried": 2, "completed": 1},
    GAPS: {
        "node": "a",
        "began": NOON,
        "ended": NOON + timedelta(seconds=1),
        "lost_operations": 3,
        "lost_checks": 0,
    },
}


def operation(operation_id: int = 1, **changed: Any) -> Row:
    """A valid operation, with some of its values replaced."""
    return ROWS[OPERATIONS] | {"operation_id": operation_id} | changed


def segment(table: str, rows: list[Row]) -> pa.Table:
    """A segment with these rows. Columns that must not be null may be null; there is no metadata."""
    fields = [pa.field(field.name, _nullable(field.type)) for field in SCHEMAS[table]]
    return pa.Table.from_pylist(rows, pa.schema(fields))


def add_segment(journal: Path, name: str, rows: list[Row], table: str = OPERATIONS) -> Path:
    """Write a segment into a journal. Makes the journal's directories if needed."""
    for each in SCHEMAS:
        (journal / each).mkdir(parents=True, exist_ok=True)
    path = journal / table / f"{name}.parquet"
    pq.write_table(segment(table, rows), path)
    return path


def _nullable(kind: pa.DataType) -> pa.DataType:
    return pa.list_(kind.value_type) if pa.types.is_list(kind) else kind
