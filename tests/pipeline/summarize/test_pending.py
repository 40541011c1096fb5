"""The number of pending operations over time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from purgatory.pipeline.transforms.pending import pending, pending_by_minute

SECOND = 1_000_000


def wait(started: float, ended: float, **others: object) -> dict[str, object]:
    return {"started": started, "waited_us": round((ended - started) * SECOND), **others}


def test_operations_are_pending_from_their_start_to_their_end(operations: Any, collected: Any) -> None:
    frame = pending(operations(wait(0, 4), wait(1, 3), wait(1, 4), wait(4, 5)))

    assert [(row["at"], row["change"], row["pending"]) for row in collected(frame)] == [
        (0.0, 1, 1),
        (1.0, 2, 3),
        (3.0, -1, 2),
        (4.0, -1, 1),
        (5.0, -1, 0),
    ]


def test_purgatories_and_kinds_are_counted_separately(operations: Any, collected: Any) -> None:
    frame = pending(
        operations(
            wait(0, 2, node="a"),
            wait(0, 2, node="b"),
            wait(1, 3, kind="Other"),
            wait(1, 4, purgatory="produce"),
        )
    )

    assert [(row["purgatory"], row["kind"], row["at"], row["pending"]) for row in collected(frame)] == [
        ("fetch", "Fetch", 0.0, 2),
        ("fetch", "Fetch", 2.0, 0),
        ("fetch", "Other", 1.0, 1),
        ("fetch", "Other", 3.0, 0),
        ("produce", "Fetch", 1.0, 1),
        ("produce", "Fetch", 4.0, 0),
    ]


def test_operations_shorter_than_a_millisecond_are_not_counted(operations: Any, collected: Any) -> None:
    frame = pending(operations(wait(0.0001, 0.0009), wait(1, 1), wait(2.0005, 2.0015)))

    assert [(row["at"], row["pending"]) for row in collected(frame)] == [
        (pytest.approx(2.000), 1),
        (pytest.approx(2.001), 0),
    ]


def test_the_number_is_never_negative_and_zero_at_the_end(operations: Any, collected: Any) -> None:
    # Each kind is a separate case. One job runs forty of them, because a job takes Spark a second.
    chance = random.Random(3)
    waits = [
        {
            "kind": f"Kind{case}",
            # Some kinds have few instants, so that many events coincide.
            "started": chance.randrange(1 + case) / 4,
            "waited_us": chance.randrange(1 + case) * SECOND // 4,
        }
        for case in range(40)
        for _ in range(chance.randrange(1, 20))
    ]

    last: dict[str, tuple[float, int]] = {}
    for row in collected(pending(operations(*waits))):
        assert row["pending"] >= 0
        last[row["kind"]] = max(last.get(row["kind"], (-1, 0)), (row["at"], row["pending"]))

    assert len(last) > 30
    assert {pending for _, pending in last.values()} == {0}


def test_each_minute_has_its_maximum_average_and_last_number(operations: Any, collected: Any) -> None:
    # Two until second 30 of the first minute, one of them until second 45 of the second minute.
    frame = pending_by_minute(pending(operations(wait(0, 105), wait(0, 30))))

    assert [
        (row["minute"], row["pending_max"], row["pending_mean"], row["pending_last"])
        for row in collected(frame)
    ] == [(0.0, 2, pytest.approx(1.5), 1), (60.0, 1, pytest.approx(0.75), 0)]


def test_a_minute_without_a_change_has_no_row_and_the_number_is_carried_over(
    operations: Any, collected: Any
) -> None:
    frame = pending_by_minute(pending(operations(wait(0, 270), wait(30, 240))))

    assert [
        (row["minute"], row["pending_max"], row["pending_mean"], row["pending_last"])
        for row in collected(frame)
    ] == [(0.0, 2, pytest.approx(1.5), 2), (240.0, 1, pytest.approx(0.5), 0)]


def test_operations_that_end_when_a_minute_begins_are_in_the_minute_before(
    operations: Any, collected: Any
) -> None:
    frame = pending_by_minute(pending(operations(*[wait(0, 60)] * 5, wait(59, 61))))

    assert [(row["minute"], row["pending_max"], row["pending_last"]) for row in collected(frame)] == [
        (0.0, 6, 6),
        (60.0, 1, 0),
    ]
