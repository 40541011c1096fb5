"""The log of the latest failures."""

from __future__ import annotations

import pytest

from purgatory import DelayedValue
from purgatory.testing import ManualClock
from purgatory.web.dashboard.failure_log import KEPT_FAILURES, EqualFailures, FailureLog
from tests.operations import Gate, raising


@pytest.fixture
def log() -> FailureLog:
    return FailureLog()


def fail(log: FailureLog, error: Exception, at: float, *keys: str) -> None:
    failing = Gate(trying=raising(error))
    ManualClock().purgatory().try_complete_else_watch(failing, keys or ("a",))
    log.note(failing, at)
    assert failing.exception() is error


def test_equal_failures_are_one_entry_with_its_count_and_times(log: FailureLog) -> None:
    fail(log, ValueError("bad"), 1.0, "a")
    fail(log, ValueError("worse"), 2.0)
    fail(log, ValueError("bad"), 3.0, "b", "c", "d", "e")
    assert log.latest() == [
        EqualFailures("Gate", "ValueError('bad')", ["'b'", "'c'", "'d'"], count=2, first=1.0, last=3.0),
        EqualFailures("Gate", "ValueError('worse')", ["'a'"], count=1, first=2.0, last=2.0),
    ]


def test_the_failures_of_two_kinds_of_operations_differ(log: FailureLog) -> None:
    class Door(Gate):
        pass

    fail(log, ValueError("bad"), 1.0)
    door = Door(trying=raising(ValueError("bad")))
    ManualClock().purgatory().try_complete_else_watch(door, ["a"])
    assert door.exception() is not None
    log.note(door, 2.0)
    assert [failures.kind for failures in log.latest()] == ["Door", "Gate"]


def test_only_the_latest_ones_are_kept(log: FailureLog) -> None:
    for number in range(KEPT_FAILURES):
        fail(log, ValueError(number), float(number))
    fail(log, ValueError(0), 50.0)
    fail(log, ValueError("another"), 51.0)
    errors = [failures.error for failures in log.latest()]
    assert errors == [
        "ValueError('another')",
        "ValueError(0)",
        *(f"ValueError({number})" for number in range(KEPT_FAILURES - 1, 1, -1)),
    ]


def test_a_failure_of_an_operation_without_a_key_names_none(log: FailureLog) -> None:
    value = ManualClock().purgatory().try_complete_else_watch(DelayedValue[int](None))
    value.fail(ValueError("bad"))
    assert value.exception() is not None
    log.note(value, 1.0)
    assert log.latest() == [
        EqualFailures("DelayedValue", "ValueError('bad')", [], count=1, first=1.0, last=1.0)
    ]
