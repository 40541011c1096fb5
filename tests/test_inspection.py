"""What observers read of operations beyond their public properties."""

from __future__ import annotations

from math import inf

import pytest

from purgatory import OperationState
from purgatory._core.inspection import ended, exception_of, waiting
from purgatory.testing import ManualClock
from tests.operations import Gate, raising


def test_an_ended_operation_gives_its_keys_state_timeout_and_deadline() -> None:
    clock = ManualClock()
    held = clock.purgatory()
    clock.advance(1.0)
    expiring = held.try_complete_else_watch(Gate(2.0), ["a", "b"])
    patient = held.try_complete_else_watch(Gate(), ["a"])
    clock.advance(3.0)
    patient.cancel()
    assert ended(expiring) == (("a", "b"), OperationState.EXPIRED, 2.0, 3.0)
    assert ended(patient) == (("a",), OperationState.CANCELLED, inf, inf)


def test_reading_the_exception_does_not_count_as_seeing_it() -> None:
    clock = ManualClock()
    error = OSError("the disk is full")
    failed = clock.purgatory().try_complete_else_watch(Gate(opened=True, completing=raising(error)), ["a"])
    assert exception_of(failed) is error
    assert exception_of(Gate()) is None
    with pytest.raises(ExceptionGroup) as reported:
        clock.advance(0.0)
    assert reported.value.exceptions == (error,)


@pytest.mark.parametrize("watchers", [1, 2])
def test_a_look_at_a_pending_operation_is_bounded(watchers: int) -> None:
    held = ManualClock().purgatory()
    for number in range(1, watchers + 1):
        operation = held.try_complete_else_watch(Gate(), range(1000))
        seen = waiting(operation, 3)
        assert (seen.number, seen.keys, seen.more_keys, seen.timing) == (number, (0, 1, 2), 997, None)


@pytest.mark.parametrize("watchers", [1, 2])
def test_one_key_is_all_there_is(watchers: int) -> None:
    held = ManualClock().purgatory()
    for _ in range(watchers):
        seen = waiting(held.try_complete_else_watch(Gate(), ["a"]), 3)
        assert (seen.keys, seen.more_keys) == (("a",), 0)


def test_an_observed_operation_has_its_timing() -> None:
    class Observer:
        def operation_finished(self, *_: object) -> None: ...

        def key_checked(self, *_: object) -> None: ...

    clock = ManualClock()
    held = clock.purgatory(observers=[Observer()])
    clock.advance(1.5)
    timing = waiting(held.try_complete_else_watch(Gate(), ["a"]), 1).timing
    assert timing is not None
    assert (timing.offered, timing.tries) == (1.5, 1)
