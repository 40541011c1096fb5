"""Windows of any length. `test_job` tests them in a journal that grows."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

import pytest

from purgatory.journal.schema import OPERATIONS
from purgatory.observer import OUTCOMES
from purgatory.pipeline.sql import select
from purgatory.pipeline.summarize.minutes import MINUTES
from purgatory.pipeline.watch.windows import Windows
from tests.pipeline.journals import NOON, operation, segment
from tests.pipeline.parts import result

NOON_US: Final = round(NOON.timestamp()) * 1_000_000
ROWS: Final[list[dict[str, Any]]] = [
    operation(
        number,
        kind="AB"[number % 2],
        started=NOON + timedelta(seconds=number * 7 % 100),
        waited_us=number**4,
        lateness_us=number if number % 3 else None,
        outcome=OUTCOMES[number % 4],
        tries=number,
    )
    for number in range(1, 90)
]


def test_windows_of_a_minute_equal_the_table_of_minutes() -> None:
    windows = Windows(60_000_000)
    rows = segment(OPERATIONS, ROWS)
    found = {}
    # Each addition gives the windows that it has changed.
    for first in range(0, len(ROWS), 10):
        added = windows.add(select(windows.query, rows.slice(first, 10)))
        found.update({(each.start, each.kind): each for each in added})
    expected = result(MINUTES, rows).to_pylist()
    assert len(found) == len(expected) > 4
    for row in expected:
        own = asdict(found[row["start_us"], row["kind"]])
        assert own.pop("end") == row["start_us"] + 60_000_000
        measures = {name: row[name] for name in own if name in row}
        times = {"start": row["start_us"], "latest": row["latest_us"]}
        assert own == pytest.approx(times | measures)


def test_a_window_includes_its_start_and_excludes_its_end() -> None:
    ends = [0, 2_499_999, 2_500_000, 4_999_999]
    windows = Windows(2_500_000)
    operations = segment(OPERATIONS, [operation(waited_us=end) for end in ends])
    found = [
        (each.start - NOON_US, each.end - NOON_US, each.latest - NOON_US, each.operations)
        for each in windows.add(select(windows.query, operations))
    ]
    assert sorted(found) == [(0, 2_500_000, 2_499_999, 2), (2_500_000, 5_000_000, 4_999_999, 2)]


def test_a_closed_window_is_forgotten() -> None:
    windows = Windows(2_000_000)
    windows.close(NOON_US)
    assert repr(windows) == "<Windows of 2 s: 0 counts>"
    windows.add(
        select(windows.query, segment(OPERATIONS, [operation(waited_us=at) for at in (0, 2_000_000)]))
    )
    windows.close(NOON_US + 2_000_000)
    assert repr(windows) == "<Windows of 2 s: 1 counts>"
    (again,) = windows.add(select(windows.query, segment(OPERATIONS, [operation(waited_us=0)])))
    assert again.operations == 1
