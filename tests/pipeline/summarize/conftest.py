"""Tables of a few rows with default values. Times are in seconds after noon of a day."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from purgatory.journal.schema import CHECKS, COMPLETED, GAPS, OPERATIONS, SCHEMAS
from tests.pipeline.journals import NOON, ROWS, Row, operation, segment

Table = Callable[..., pa.Table]


def _table(name: str, defaults: Callable[[], Row]) -> Table:
    instants = [field.name for field in SCHEMAS[name] if pa.types.is_timestamp(field.type)]

    def make(*rows: Row) -> pa.Table:
        return segment(name, [_with_instants(defaults() | row) for row in rows])

    def _with_instants(row: Row) -> Row:
        return row | {name: NOON + timedelta(seconds=row[name]) for name in instants}

    return make


@pytest.fixture(scope="session")
def operations() -> Table:
    """Makes operations that start at noon and complete at their second try, a second later."""
    ids = count()
    return _table(
        OPERATIONS,
        lambda: operation(
            next(ids),
            started=0,
            timeout_us=None,
            waited_us=1_000_000,
            lateness_us=None,
            outcome=COMPLETED,
            tries=2,
        ),
    )


@pytest.fixture(scope="session")
def checks() -> Table:
    """Makes checks at noon that try one operation each and complete none."""
    return _table(CHECKS, lambda: ROWS[CHECKS] | {"checked": 0, "tried": 1, "completed": 0})


@pytest.fixture(scope="session")
def gaps() -> Table:
    """Makes gaps of one operation, which last a second from noon."""
    return _table(GAPS, lambda: ROWS[GAPS] | {"began": 0, "ended": 1, "lost_operations": 1})


@pytest.fixture(scope="session")
def collected() -> Callable[[pa.Table], list[Mapping[str, Any]]]:
    """The rows of a table in a fixed order, with instants in seconds after noon."""

    def collect(table: pa.Table) -> list[Mapping[str, Any]]:
        rows = [
            {
                name: (value - NOON).total_seconds() if isinstance(value, datetime) else value
                for name, value in row.items()
            }
            for row in table.to_pylist()
        ]
        return sorted(rows, key=lambda row: repr(list(row.values())))

    return collect
