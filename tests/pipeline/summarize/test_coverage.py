"""The time that a journal covers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa

from purgatory.pipeline.summarize.coverage import Coverage
from tests.pipeline.journals import NOON

NOON_US = round(NOON.timestamp()) * 1_000_000
SPAN = pa.schema([("first_us", pa.int64()), ("last_us", pa.int64())])


def test_a_journal_covers_the_time_from_its_first_event_to_its_last() -> None:
    of_operations, of_checks, none = (
        pa.Table.from_pylist([{"first_us": first, "last_us": last} for first, last in rows], SPAN)
        for rows in ([(20, 30), (10, 110)], [(5, 5), (70, 70)], [])
    )

    assert Coverage.of(of_operations, of_checks) == Coverage(5, 110)
    assert Coverage.of(of_operations, none) == Coverage(10, 110)
    assert Coverage.of(none) == Coverage(0, 0)


def test_the_first_and_the_last_minute_are_marked_as_partial(collected: Any) -> None:
    minutes = pa.table({"minute": [NOON + timedelta(minutes=minute) for minute in range(3)]})
    coverage = Coverage(NOON_US + 12_000_000, NOON_US + 150_000_000)

    assert sorted(tuple(row.values()) for row in collected(coverage.mark(minutes))) == [
        (0.0, 12.0, 60.0, True),
        (60.0, 60.0, 120.0, False),
        (120.0, 120.0, 150.0, True),
    ]
