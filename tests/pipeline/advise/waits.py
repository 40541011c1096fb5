"""Operations with a stratum, a wait and an outcome."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.advise.survival import curves
from tests.pipeline.journals import Row, operation, segment
from tests.pipeline.parts import result

# Stratum, wait in microseconds, outcome.
Wait = tuple[str, int, str]

NO_KEYS = pa.table({"purgatory": pa.array([], pa.string()), "key": pa.array([], pa.string())})


def waited(stratum: str, wait: int, outcome: str, **others: object) -> Row:
    """An operation of a kind, which is its stratum. If it expired, it expired by its timeout."""
    lateness = 0 if outcome == "expired" else None
    plain: Row = {"kind": stratum, "waited_us": wait, "outcome": outcome, "lateness_us": lateness}
    return operation(**(plain | others))


def curves_of(operations: Iterable[Row]) -> pa.Table:
    part = curves(NO_KEYS, lambda rows: rows)
    return result(part, segment(OPERATIONS, list(operations)), chunk=500)
