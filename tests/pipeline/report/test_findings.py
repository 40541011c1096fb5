"""What the page derives from the tables."""

from __future__ import annotations

from purgatory.pipeline.report.findings import kinds
from tests.pipeline.report.sample_findings import (
    FETCH,
    MINUTE,
    NOON,
    PRODUCE,
    checks,
    findings,
    minute,
    pending,
    step,
    summary,
    timeouts,
)


def test_kinds_are_added_up_over_time() -> None:
    (row,) = kinds(
        [minute(0), minute(1, operations=12, completed=12, expired=0, cancelled=0, tries_per_operation=3.5)],
        [pending(0, most=3), pending(1, most=2)],
    )

    assert row == FETCH | {
        "operations": 16,
        "completed": 14,
        "expired": 1,
        "cancelled": 1,
        "failed": 0,
        "tries_per_operation": 3.0,
        "lateness_p99_us": 150.0,
        "pending_max": 3,
    }


def test_the_lateness_of_a_kind_is_the_highest_of_any_minute() -> None:
    lateness = [
        kinds([minute(at, lateness_p99_us=each) for at, each in enumerate(known)], [])[0]["lateness_p99_us"]
        for known in ([None, None], [None, 5.0], [7.0, None, 5.0])
    ]

    assert lateness == [None, 5.0, 7.0]


def test_kinds_with_the_most_operations_come_first() -> None:
    found = findings(**summary(minute(0), minute(0, PRODUCE, operations=5), pending=[]))

    assert found.series == ["Produce in produce", "Fetch in fetch"]
    assert found.operations == 9


def test_without_a_summary_the_kinds_come_from_the_advice() -> None:
    rows = [*timeouts(operations=3), *timeouts(key="k", operations=99), *timeouts(PRODUCE, operations=5)]
    found = findings(timeouts=rows)

    assert found.series == ["Produce in produce", "Fetch in fetch"]
    assert found.advised == 8


def test_the_span_includes_pending_operations_and_checks() -> None:
    found = findings(**summary(minute(3), pending=[pending(1)], fan_out=[checks(5)]))

    assert found.span == (NOON + MINUTE, NOON + 6 * MINUTE)
    assert found.step == MINUTE


def test_the_first_and_the_last_step_may_be_shorter() -> None:
    first = minute(0) | {"since": NOON + 0.7 * MINUTE}
    found = findings(**summary(first, minute(1), pending=[], fan_out=[]))

    assert found.span == (NOON + 0.7 * MINUTE, NOON + 2 * MINUTE)
    assert found.step == MINUTE
    assert findings(**summary(first, pending=[], fan_out=[])).step == MINUTE


def test_without_rows_there_is_no_span() -> None:
    found = findings(**summary())

    assert (found.span, found.step, found.series) == (None, None, [])


def test_adjacent_incomplete_steps_are_one_interval() -> None:
    found = findings(gaps=[step(number) | {"incomplete_minutes": 1} for number in (0, 1, 3)])

    assert found.incomplete == [(NOON, NOON + 2 * MINUTE), (NOON + 3 * MINUTE, NOON + 4 * MINUTE)]
