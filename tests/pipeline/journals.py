"""Journals by hand: rows to choose from, and segments with any rows in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS, SCHEMAS

Row = dict[str, Any]

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)

# One row of each table with which all is well.
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
    return ROWS[OPERATIONS] | {"operation_id": operation_id} | changed


def segment(table: str, rows: list[Row]) -> pa.Table:
    """With these rows, which may lack what they must have; but not with the journal's metadata."""
    fields = [pa.field(field.name, _nullable(field.type)) for field in SCHEMAS[table]]
    return pa.Table.from_pylist(rows, pa.schema(fields))


def add_segment(journal: Path, name: str, rows: list[Row], table: str = OPERATIONS) -> Path:
    """Write it into a journal, which is made where there is none."""
    for each in SCHEMAS:
        (journal / each).mkdir(parents=True, exist_ok=True)
    path = journal / table / f"{name}.parquet"
    pq.write_table(segment(table, rows), path)
    return path


def _nullable(kind: pa.DataType) -> pa.DataType:
    return pa.list_(kind.value_type) if pa.types.is_list(kind) else kind
