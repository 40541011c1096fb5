"""Invalid rows are refused with a reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS
from purgatory.pipeline.schemas import CHECKS_TABLE, GAPS_TABLE, OPERATIONS_TABLE, Table
from purgatory.pipeline.transforms import validation
from tests.pipeline.journals import NOON, ROWS, segment


def reasons(table: Table, changes: list[dict[str, Any]]) -> list[str | None]:
    """The reason for refusing the table's row with each change. How the rows are chunked does not matter."""
    rows = segment(table.name, [ROWS[table.name] | change for change in changes])
    found: list[str | None] = validation.reasons(rows, table).to_pylist()
    chunks = pa.concat_tables([rows.slice(0, 1), rows.slice(1)])
    assert validation.reasons(chunks, table).to_pylist() == found
    return found


def test_valid_operations_are_not_refused() -> None:
    valid: list[dict[str, Any]] = [
        {},
        {"outcome": "completed", "lateness_us": None, "waited_us": 0},
        {"outcome": "cancelled", "lateness_us": None, "timeout_us": None},
        {"outcome": "failed", "lateness_us": None},
        # Expired before its deadline, by closing its purgatory.
        {"lateness_us": None, "waited_us": 10},
        # Rescheduled, so it waited for longer than its latest timeout.
        {"lateness_us": None, "waited_us": 10_000},
        {"timeout_us": 0, "waited_us": 0, "lateness_us": None},
        {"lateness_us": 600},
        {"keys": []},
        {"started": datetime(1970, 1, 1, tzinfo=UTC)},
        {"node": "", "purgatory": ""},
        {"kind": "é" * 400},
    ]
    assert reasons(OPERATIONS_TABLE, valid) == [None] * len(valid)


def test_an_invalid_operation_is_refused_with_the_reason() -> None:
    invalid: dict[str, dict[str, Any]] = {
        **{
            f"{name} is null": {name: None}
            for name in ROWS[OPERATIONS]
            if name not in ("timeout_us", "lateness_us")
        },
        "keys holds a null": {"keys": ["k", None]},
        "started is not in the years from 1970 to 9998": {"started": datetime(1969, 12, 31, tzinfo=UTC)},
        "kind is empty": {"kind": ""},
        "outcome is none of completed, expired, cancelled, failed": {"outcome": "pending"},
        "tries is below 1": {"tries": 0},
        "timeout_us is negative": {"timeout_us": -1},
        "waited_us is negative": {"waited_us": -1},
        "lateness_us is negative": {"lateness_us": -1},
        "it ended after the year 9998": {"waited_us": (1 << 63) - 1},
        "lateness_us is given, but its timeout did not expire": {"outcome": "completed"},
        "lateness_us is more than waited_us": {"lateness_us": 601},
    }
    assert reasons(OPERATIONS_TABLE, list(invalid.values())) == list(invalid)
    assert reasons(OPERATIONS_TABLE, [{"timeout_us": None}, {"started": datetime(9999, 12, 31, 1)}]) == [
        "lateness_us is given, but its timeout did not expire",
        "started is not in the years from 1970 to 9998",
    ]


def test_an_invalid_check_or_gap_is_refused_with_the_reason() -> None:
    checks: dict[str | None, dict[str, Any]] = {
        None: {},
        **{f"{name} is null": {name: None} for name in ROWS[CHECKS]},
        "tried is negative": {"tried": -1},
        "completed is negative": {"completed": -1},
        "completed is more than tried": {"completed": 3},
    }
    assert reasons(CHECKS_TABLE, list(checks.values())) == list(checks)
    gaps: dict[str | None, dict[str, Any]] = {
        None: {},
        **{f"{name} is null": {name: None} for name in ROWS[GAPS]},
        "lost_operations is negative": {"lost_operations": -1},
        "lost_checks is negative": {"lost_checks": -1},
        "it ended before it began": {"ended": NOON - timedelta(microseconds=1)},
        "it ended after the year 9998": {"ended": datetime(9999, 12, 31, 1)},
        "it lasted for more than a year": {"ended": NOON + timedelta(days=366, microseconds=1)},
    }
    a_year: dict[str, Any] = {"ended": NOON + timedelta(days=366)}
    assert reasons(GAPS_TABLE, [*gaps.values(), a_year]) == [*gaps, None]


def test_a_table_without_rows_has_no_reasons() -> None:
    assert reasons(OPERATIONS_TABLE, []) == []
