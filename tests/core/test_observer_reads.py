"""What observers read of operations beyond their public properties."""

from __future__ import annotations

from math import inf

import pytest

from purgatory import DelayedValue, OperationState
from purgatory.observer import arrival, ended, exception_of, timing_of, watched_keys
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
        assert arrival(operation) == number
        assert watched_keys(operation, 3) == ((0, 1, 2), 1000)
        assert timing_of(operation) is None


@pytest.mark.parametrize("watchers", [1, 2])
def test_an_operation_on_one_key_has_one_key(watchers: int) -> None:
    held = ManualClock().purgatory()
    for _ in range(watchers):
        assert watched_keys(held.try_complete_else_watch(Gate(), ["a"]), 3) == (("a",), 1)


def test_an_observed_operation_has_its_timing() -> None:
    class Observer:
        def operation_finished(self, *_: object) -> None: ...

        def key_checked(self, *_: object) -> None: ...

    clock = ManualClock()
    held = clock.purgatory(observers=[Observer()])
    clock.advance(1.5)
    timing = timing_of(held.try_complete_else_watch(Gate(), ["a"]))
    assert timing is not None
    assert (timing.offered, timing.tries) == (1.5, 1)


@pytest.mark.parametrize("watchers", [1, 2])
def test_an_operation_without_a_key_has_none_while_it_waits_and_afterwards(watchers: int) -> None:
    held = ManualClock().purgatory()
    values = [held.try_complete_else_watch(DelayedValue[int](None)) for _ in range(watchers)]
    assert [watched_keys(value, 3) for value in values] == [((), 0)] * watchers
    for value in values:
        held.watch_also(value, range(1000))
        assert watched_keys(value, 3) == ((0, 1, 2), 1000)
        value.cancel()
        assert ended(value)[0] == tuple(range(1000))
    ended_at_once = held.try_complete_else_watch(DelayedValue[int](None))
    ended_at_once.cancel()
    assert ended(ended_at_once)[0] == ()
