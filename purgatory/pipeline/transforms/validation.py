"""Finds rows of a journal that cannot be right, and gives the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatory.journal.schema import CHECKS, EXPIRED, GAPS, OPERATIONS, SCHEMAS
from purgatory.observer import OUTCOMES
from purgatory.pipeline.schemas import Table

# Durations and instants are in microseconds, instants since 1970. A date is the name of a directory, and a
# year after 9999 would have more than four digits.
_LATEST: Final = 253_402_214_400_000_000
# `summarize.gaps` makes a row for each minute of a gap, so gaps must not be longer.
_YEAR: Final = 366 * 86_400_000_000

# A reason, and whether the reason applies to each row. Null counts as no.
Fault = tuple[str, pa.ChunkedArray]


def reasons(rows: pa.Table, table: Table) -> pa.ChunkedArray:
    """The reason for which each row is refused: its first fault. Null if the row is valid."""
    found = pa.chunked_array([pa.nulls(rows.num_rows, pa.string())])
    for reason, applies in _faults(rows, table):
        if pc.any(applies).as_py():
            first = pc.and_(pc.is_null(found), pc.fill_null(applies, False))
            found = pc.if_else(first, reason, found)
    return found


def _faults(rows: pa.Table, table: Table) -> Iterator[Fault]:
    for field in SCHEMAS[table.name]:
        if not field.nullable:
            yield f"{field.name} is null", pc.is_null(rows[field.name])
        if pa.types.is_list(field.type):
            yield f"{field.name} holds a null", _holds_null(rows[field.name])
    at = _microseconds(rows, table.instant)
    yield (
        f"{table.instant} is not in the years from 1970 to 9998",
        pc.or_(pc.less(at, 0), pc.greater(at, _LATEST)),
    )
    yield from _OWN_FAULTS[table.name](rows)


def _holds_null(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    array = lists.combine_chunks()
    holders = pc.list_parent_indices(array).filter(pc.is_null(pc.list_flatten(array)))
    marks = np.zeros(len(array), dtype=bool)
    marks[holders.to_numpy()] = True
    return pa.chunked_array([marks])


def _faults_of_operations(rows: pa.Table) -> Iterator[Fault]:
    outcome, waited, lateness = rows["outcome"], rows["waited_us"], rows["lateness_us"]
    yield "kind is empty", pc.equal(rows["kind"], "")
    yield f"outcome is none of {', '.join(OUTCOMES)}", pc.invert(pc.is_in(outcome, pa.array(OUTCOMES)))
    yield "tries is below 1", pc.less(rows["tries"], 1)
    yield from _negative(rows, "timeout_us", "waited_us", "lateness_us")
    yield (
        "it ended after the year 9998",
        pc.greater(waited, pc.subtract(_LATEST, _microseconds(rows, "started"))),
    )
    # An expired operation without a lateness is valid: closing its purgatory expired it.
    expired = pc.and_(pc.equal(outcome, EXPIRED), pc.is_valid(rows["timeout_us"]))
    yield (
        "lateness_us is given, but its timeout did not expire",
        pc.and_(pc.is_valid(lateness), pc.invert(expired)),
    )
    yield "lateness_us is more than waited_us", pc.greater(lateness, waited)


def _faults_of_checks(rows: pa.Table) -> Iterator[Fault]:
    yield from _negative(rows, "tried", "completed")
    yield "completed is more than tried", pc.greater(rows["completed"], rows["tried"])


def _faults_of_gaps(rows: pa.Table) -> Iterator[Fault]:
    began, ended = _microseconds(rows, "began"), _microseconds(rows, "ended")
    yield from _negative(rows, "lost_operations", "lost_checks")
    yield "it ended before it began", pc.less(ended, began)
    yield "it ended after the year 9998", pc.greater(ended, _LATEST)
    yield "it lasted for more than a year", pc.greater(pc.subtract(ended, began), _YEAR)


def _negative(rows: pa.Table, *names: str) -> Iterator[Fault]:
    for name in names:
        yield f"{name} is negative", pc.less(rows[name], 0)


def _microseconds(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return rows[name].cast(pa.int64())


_OWN_FAULTS: Final = {
    OPERATIONS: _faults_of_operations,
    CHECKS: _faults_of_checks,
    GAPS: _faults_of_gaps,
}
