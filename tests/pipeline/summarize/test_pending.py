"""The number of pending operations over time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from purgatory.pipeline.summarize.coverage import Coverage
from purgatory.pipeline.summarize.pending import CHANGES, pending
from tests.pipeline.journals import NOON
from tests.pipeline.parts import result

SECOND = 1_000_000
MINUTE = 60 * SECOND
NOON_US = round(NOON.timestamp()) * SECOND


def wait(started: float, ended: float, **others: object) -> dict[str, object]:
    return {"started": started, "waited_us": round((ended - started) * SECOND), **others}


# The waits of each kind.
CASES: dict[str, list[dict[str, object]]] = {
    # Two until second 30 of the first minute, one of them until second 45 of the second minute.
    "two": [wait(0, 105), wait(0, 30)],
    "lasting": [wait(0, 270), wait(30, 240), wait(0, 300)],
    "until a minute begins": [*[wait(0, 60)] * 5, wait(59, 61)],
    # A thousand of half a millisecond, one after the other, and two more at the same time.
    "short": [
        *(wait(number / 1_000, number / 1_000 + 0.0005) for number in range(1_000)),
        wait(0.0001, 0.0004),
        wait(0.0002, 0.0003),
        wait(0, 1),
    ],
    "one after the other": [wait(0, 1), wait(1, 2), wait(2, 2)],
    "anywhere": [wait(0, 3, node="a"), wait(0, 3, node="b"), wait(1, 4, purgatory="produce")],
}


@pytest.fixture(scope="module")
def rows(operations: Any, collected: Any) -> Mapping[str, list[tuple[Any, ...]]]:
    """The rows of each kind, in six whole minutes."""
    table = operations(*({"kind": kind} | row for kind, case in CASES.items() for row in case))
    found = collected(pending(result(CHANGES, table), Coverage(NOON_US, NOON_US + 6 * MINUTE)))
    names = ("purgatory", "minute", "pending_max", "pending_mean", "pending_last")
    return {
        kind: [tuple(row[name] for name in names) for row in found if row["kind"] == kind] for kind in CASES
    }


def test_each_minute_has_its_maximum_average_and_last_number(rows: Mapping[str, list[Any]]) -> None:
    assert rows["two"] == [("fetch", 0.0, 2, 1.5, 1), ("fetch", 60.0, 1, 0.75, 0)]


def test_a_minute_without_a_change_has_no_row_and_the_number_is_carried_over(
    rows: Mapping[str, list[Any]],
) -> None:
    assert rows["lasting"] == [
        ("fetch", 0.0, 3, 2.5, 3),
        ("fetch", 240.0, 2, 1.5, 1),
        ("fetch", 300.0, 0, 0.0, 0),
    ]


def test_operations_that_end_when_a_minute_begins_are_in_the_minute_before(
    rows: Mapping[str, list[Any]],
) -> None:
    assert [row[1:3] for row in rows["until a minute begins"]] == [(0.0, 6), (60.0, 1)]


def test_operations_shorter_than_a_millisecond_are_pending_for_their_time(
    rows: Mapping[str, list[Any]],
) -> None:
    mean = pytest.approx((0.5 + 0.0003 + 0.0001 + 1) / 60)
    assert rows["short"] == [("fetch", 0.0, 4, mean, 0)]


def test_an_operation_that_ends_as_another_begins_is_not_pending_with_it(
    rows: Mapping[str, list[Any]],
) -> None:
    assert [row[2:] for row in rows["one after the other"]] == [(1, pytest.approx(2 / 60), 0)]


def test_purgatories_are_counted_separately_and_their_nodes_together(
    rows: Mapping[str, list[Any]],
) -> None:
    assert rows["anywhere"] == [("fetch", 0.0, 2, 0.1, 0), ("produce", 0.0, 1, 0.05, 0)]


def test_it_agrees_with_a_model_that_looks_at_every_instant(operations: Any, collected: Any) -> None:
    # Each kind is a separate case.
    chance = random.Random(3)
    waits: list[dict[str, Any]] = [
        {
            "kind": f"Kind{case}",
            # Some kinds have few instants, so that many events coincide.
            "started": chance.randrange(1 + case) * 7,
            "waited_us": chance.randrange(1 + case) * 7 * SECOND + chance.randrange(2) * (case % 3) * 500,
        }
        for case in range(40)
        for _ in range(chance.randrange(1, 20))
    ]
    changed = result(CHANGES, operations(*waits), chunk=50)
    rows = collected(pending(changed, Coverage.of(changed)))

    spans = [(each["started"] * SECOND, each["started"] * SECOND + each["waited_us"]) for each in waits]
    covered = min(began for began, _ in spans), max(ended for _, ended in spans)
    expected = {
        (kind, minute): modelled(
            [span for span, of in zip(spans, waits, strict=True) if of["kind"] == kind], minute, covered
        )
        for kind in {str(each["kind"]) for each in waits}
        for minute in {
            instant // MINUTE
            for span, of in zip(spans, waits, strict=True)
            if of["kind"] == kind
            for instant in span
        }
    }
    assert len(expected) > 100
    assert {(row["kind"], row["minute"] // 60): row["pending_last"] for row in rows} == {
        key: last for key, (_, _, last) in expected.items()
    }
    for row in rows:
        most, mean, _ = expected[row["kind"], row["minute"] // 60]
        assert row["pending_max"] == most
        assert row["pending_mean"] == pytest.approx(mean, abs=1e-12)


def modelled(spans: list[tuple[int, int]], minute: int, covered: tuple[int, int]) -> tuple[int, float, int]:
    """The most at any instant, the sum of overlaps by the covered part of the minute, and the last number."""
    begin, end = minute * MINUTE, (minute + 1) * MINUTE
    instants = {begin, *(each for span in spans for each in span if begin <= each < end)}
    numbers = {at: sum(began <= at < ended for began, ended in spans) for at in instants}
    overlap = sum(max(0, min(ended, end) - max(began, begin)) for began, ended in spans)
    part = max(1, min(end, covered[1]) - max(begin, covered[0]))
    return max(numbers.values()), overlap / part, numbers[max(instants)]
