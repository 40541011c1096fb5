from __future__ import annotations

import random
from typing import Any

import pytest

from purgatory.pipeline.transforms.pending import pending, pending_by_minute

SECOND = 1_000_000


def stay(started: float, ended: float, **others: object) -> dict[str, object]:
    return {"started": started, "waited_us": round((ended - started) * SECOND), **others}


def test_as_many_are_pending_as_have_begun_and_not_ended(operations: Any, told: Any) -> None:
    frame = pending(operations(stay(0, 4), stay(1, 3), stay(1, 4), stay(4, 5)))

    assert [(row["at"], row["change"], row["pending"]) for row in told(frame)] == [
        (0.0, 1, 1),
        (1.0, 2, 3),
        (3.0, -1, 2),
        (4.0, -1, 1),
        (5.0, -1, 0),
    ]


def test_purgatories_and_kinds_are_swept_apart_and_nodes_together(operations: Any, told: Any) -> None:
    frame = pending(
        operations(
            stay(0, 2, node="a"),
            stay(0, 2, node="b"),
            stay(1, 3, kind="Other"),
            stay(1, 4, purgatory="produce"),
        )
    )

    assert [(row["purgatory"], row["kind"], row["at"], row["pending"]) for row in told(frame)] == [
        ("fetch", "Fetch", 0.0, 2),
        ("fetch", "Fetch", 2.0, 0),
        ("fetch", "Other", 1.0, 1),
        ("fetch", "Other", 3.0, 0),
        ("produce", "Fetch", 1.0, 1),
        ("produce", "Fetch", 4.0, 0),
    ]


def test_what_ends_within_the_millisecond_in_which_it_began_is_not_seen(operations: Any, told: Any) -> None:
    frame = pending(operations(stay(0.0001, 0.0009), stay(1, 1), stay(2.0005, 2.0015)))

    assert [(row["at"], row["pending"]) for row in told(frame)] == [
        (pytest.approx(2.000), 1),
        (pytest.approx(2.001), 0),
    ]


def test_never_less_than_none_are_pending_and_none_in_the_end(operations: Any, told: Any) -> None:
    # A kind is a case of its own: forty of them are swept at once, since each sweep costs Spark a second.
    chance = random.Random(3)
    stays = [
        {
            "kind": f"Kind{case}",
            # Few instants in some, so that many fall on the same.
            "started": chance.randrange(1 + case) / 4,
            "waited_us": chance.randrange(1 + case) * SECOND // 4,
        }
        for case in range(40)
        for _ in range(chance.randrange(1, 20))
    ]

    last: dict[str, tuple[float, int]] = {}
    for row in told(pending(operations(*stays))):
        assert row["pending"] >= 0
        last[row["kind"]] = max(last.get(row["kind"], (-1, 0)), (row["at"], row["pending"]))

    assert len(last) > 30
    assert {pending for _, pending in last.values()} == {0}


def test_each_minute_has_its_most_its_average_over_time_and_its_last(operations: Any, told: Any) -> None:
    # Two from second 0 to 30 of the first minute, one on to the 45th second of the second minute.
    frame = pending_by_minute(pending(operations(stay(0, 105), stay(0, 30))))

    assert [
        (row["minute"], row["pending_max"], row["pending_mean"], row["pending_last"]) for row in told(frame)
    ] == [(0.0, 2, pytest.approx(1.5), 1), (60.0, 1, pytest.approx(0.75), 0)]


def test_a_minute_in_which_nothing_changed_has_no_row_and_the_next_one_goes_on_from_before(
    operations: Any, told: Any
) -> None:
    frame = pending_by_minute(pending(operations(stay(0, 270), stay(30, 240))))

    assert [
        (row["minute"], row["pending_max"], row["pending_mean"], row["pending_last"]) for row in told(frame)
    ] == [(0.0, 2, pytest.approx(1.5), 2), (240.0, 1, pytest.approx(0.5), 0)]


def test_those_that_end_as_a_minute_begins_are_of_the_minute_before(operations: Any, told: Any) -> None:
    frame = pending_by_minute(pending(operations(*[stay(0, 60)] * 5, stay(59, 61))))

    assert [(row["minute"], row["pending_max"], row["pending_last"]) for row in told(frame)] == [
        (0.0, 6, 6),
        (60.0, 1, 0),
    ]
