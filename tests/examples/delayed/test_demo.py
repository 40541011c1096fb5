"""What the demo's check sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from examples.delayed.demo.deliveries import Deliveries
from examples.delayed.demo.run import Plan

# Each is due at 1,000.
SENT = ("acknowledge", "0-0", 1_000)
CANCELLED = ("cancel", "0-0", 999.0)
ARRIVED = ("arrive", "0-0", 1_000, 1_000, 1_005.0)


@pytest.mark.parametrize(
    ("events", "complete", "counts"),
    [
        ([SENT], False, {"scheduled": 1, "delivered": 0}),
        ([SENT, ARRIVED], True, {"scheduled": 1, "delivered": 1, "worst": 5.0}),
        # It may arrive before its sender knows its id.
        ([ARRIVED, SENT], True, {"delivered": 1}),
        ([SENT, CANCELLED], True, {"cancelled": 1, "delivered": 0}),
        # It was cancelled too late.
        ([SENT, ("cancel", "0-0", 1_000.0), ARRIVED], True, {"cancelled": 0, "delivered": 1}),
        (
            [SENT, ARRIVED, ("arrive", "0-0", 1_000, 1_000, 5_000.0)],
            True,
            {"duplicates": 1, "delivered": 1, "worst": 5.0},
        ),
    ],
)
def test_what_arrives_in_time_is_counted(
    events: list[tuple[Any, ...]], complete: bool, counts: dict[str, float]
) -> None:
    deliveries = after(events)
    figures = deliveries.figures()
    assert {name: getattr(figures, name) for name in counts} == counts
    assert deliveries.is_complete is complete
    assert list(deliveries.faults()) == [] or not complete


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([SENT], "were acknowledged and have not arrived"),
        ([SENT, ("arrive", "0-0", 1_000, 999, 1_000.0)], "arrived early"),
        ([SENT, ("arrive", "0-0", 900, 950, 950.0)], "arrived with another due time"),
        ([SENT, CANCELLED, ARRIVED], "arrived after an acknowledged cancel"),
        ([ARRIVED], "arrived and were not sent"),
    ],
)
def test_what_must_not_happen_is_a_fault(events: list[tuple[Any, ...]], fault: str) -> None:
    assert list(after(events).faults()) == [f"1 records {fault}, such as 0-0"]


def after(events: list[tuple[Any, ...]]) -> Deliveries:
    deliveries = Deliveries()
    for name, *values in events:
        getattr(deliveries, name)(*values)
    return deliveries


@pytest.mark.parametrize("longest", [0.2, 4, 30])
def test_a_delay_is_never_longer_than_the_longest_level(longest: float, tmp_path: Path) -> None:
    levels = Plan("levels", 10, 1.0, longest, 1).settings("127.0.0.1:1", tmp_path).levels
    assert levels == tuple(sorted(levels))
    assert levels[-1] >= longest * 1000
