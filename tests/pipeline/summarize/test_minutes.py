"""The measures of each minute."""

from __future__ import annotations

from typing import Any

import pytest

from purgatory.observer import OUTCOMES
from purgatory.pipeline.summarize.minutes import MINUTES
from tests.pipeline.parts import result

# The operations of each kind.
CASES: dict[str, list[dict[str, Any]]] = {
    "outcomes": [
        {"waited_us": 59_999_999},
        {"waited_us": 60_000_000, "outcome": "cancelled"},
        {"waited_us": 61_000_000, "outcome": "expired", "lateness_us": 0},
        {"waited_us": 61_000_000, "outcome": "failed", "purgatory": "produce"},
        {"started": 61, "waited_us": 0, "outcome": "expired"},
    ],
    "waits": [{"waited_us": wait, "outcome": "expired" if wait % 2 else "completed"} for wait in range(1001)],
    "equal waits": [*[{"waited_us": 10}] * 98, {"waited_us": 20}, {"waited_us": 30}],
    "late": [
        *({"outcome": "expired", "lateness_us": late} for late in range(101)),
        *({"outcome": "expired", "lateness_us": None} for _ in range(5)),
    ],
    "never late": [{}],
    "tries": [
        {"tries": 1, "waited_us": 1},
        {"tries": 1, "waited_us": 1},
        {"tries": 7, "waited_us": 2},
    ],
}


@pytest.fixture(scope="module")
def rows(operations: Any, collected: Any) -> dict[str, list[Any]]:
    """The rows of each kind."""
    table = operations(*({"kind": kind} | row for kind, case in CASES.items() for row in case))
    found = collected(result(MINUTES, table))
    return {kind: [row for row in found if row["kind"] == kind] for kind in CASES}


def test_each_operation_is_counted_by_its_outcome_in_the_minute_in_which_it_ended(
    rows: dict[str, list[Any]],
) -> None:
    counted = [
        (row["minute"], row["purgatory"], row["operations"], *(row[name] for name in OUTCOMES))
        for row in rows["outcomes"]
    ]

    assert counted == [
        (0.0, "fetch", 1, 1, 0, 0, 0),
        (60.0, "fetch", 3, 0, 2, 1, 0),
        (60.0, "produce", 1, 0, 0, 0, 1),
    ]


def test_waits_have_quantiles_whatever_their_outcome(rows: dict[str, list[Any]]) -> None:
    (row,) = rows["waits"]

    assert (row["wait_p50_us"], row["wait_p90_us"], row["wait_p99_us"], row["wait_p999_us"]) == (
        500,
        900,
        990,
        999,
    )


def test_equal_waits_count_as_often_as_they_occur(rows: dict[str, list[Any]]) -> None:
    (row,) = rows["equal waits"]

    assert (row["operations"], row["wait_p50_us"], row["wait_p90_us"]) == (100, 10, 10)


def test_lateness_is_measured_over_operations_that_have_one(rows: dict[str, list[Any]]) -> None:
    (late,), (never,) = rows["late"], rows["never late"]

    assert (late["lateness_p99_us"], never["lateness_p99_us"]) == (99, None)


def test_tries_are_averaged_over_operations(rows: dict[str, list[Any]]) -> None:
    assert [row["tries_per_operation"] for row in rows["tries"]] == [3.0]
