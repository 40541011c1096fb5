"""Exceptions of hooks and observers on a manual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Any

import pytest

from purgatory import DelayedOperation, OperationState
from purgatory.observer import Timing
from purgatory.testing import ManualClock
from tests.operations import Gate, Stop, raising


def logged_gate(timeout: float, name: str, log: list[str]) -> Gate:
    """A gate that appends its name to `log` when it completes or expires."""
    return Gate(timeout, name, completing=lambda: log.append(name))


def test_errors_are_raised_together_when_all_the_time_has_passed() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    errors = [LookupError("first"), OSError("second")]

    failing = [
        purgatory.try_complete_else_watch(Gate(timeout, completing=raising(error)), ["key"])
        for timeout, error in enumerate(errors, start=1)
    ]
    good = purgatory.try_complete_else_watch(Gate(3.0), ["key"])
    with pytest.raises(ExceptionGroup, match="raised while the clock was advanced, or before") as caught:
        clock.advance(5.0)
    assert list(caught.value.exceptions) == errors
    assert [operation.state for operation in failing] == [OperationState.FAILED] * 2
    assert good.expired
    assert clock.time() == 5.0
    # They are not raised again.
    clock.advance(1.0)


def test_a_step_raises_earlier_failures_that_nobody_has_seen() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()

    fail = raising(LookupError("at once"))
    seen = purgatory.try_complete_else_watch(Gate(1.0, completing=fail), ["seen"])
    unseen = purgatory.try_complete_else_watch(Gate(1.0, completing=fail), ["unseen"])
    for operation in (seen, unseen):
        operation.opened = True
    purgatory.check_and_complete("seen")
    purgatory.check_and_complete("unseen")
    assert isinstance(seen.exception(), LookupError)
    with pytest.raises(ExceptionGroup) as caught:
        clock.advance(0)
    assert caught.value.exceptions == (unseen.exception(),)


def test_a_cancelled_error_of_a_hook_is_among_the_errors() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    cancelled = asyncio.CancelledError()
    reading = purgatory.try_complete_else_watch(Gate(1.0, completing=raising(cancelled)), ["key"])
    with pytest.raises(ExceptionGroup) as caught:
        clock.advance(2.0)
    (error,) = caught.value.exceptions
    assert isinstance(error, RuntimeError)
    assert error.__cause__ is cancelled
    assert reading.state is OperationState.FAILED
    assert clock.time() == 2.0


def test_the_error_of_an_observer_is_among_the_errors() -> None:
    class BrokenObserver:
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            raise OSError("the disk is full")

        def key_checked(
            self, purgatory: str, key: Hashable, tried: int, completed: int, at: float
        ) -> None: ...

    clock = ManualClock()
    operation = clock.purgatory(observers=[BrokenObserver()]).try_complete_else_watch(Gate(1.0), ["key"])
    with pytest.raises(ExceptionGroup) as caught:
        clock.advance(1.0)
    assert [str(error) for error in caught.value.exceptions] == ["the disk is full"]
    assert operation.expired


def test_a_hook_cannot_advance_the_clock_that_called_it() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    impatient = purgatory.try_complete_else_watch(Gate(1.0, completing=lambda: clock.advance(1.0)), ["key"])
    other = purgatory.try_complete_else_watch(Gate(1.5), ["key"])
    with pytest.raises(ExceptionGroup) as raised:
        clock.advance(2.0)
    assert raised.group_contains(RuntimeError, match="the clock is being advanced")
    assert impatient.state is OperationState.FAILED
    assert other.state is OperationState.EXPIRED
    assert clock.time() == 2.0


def test_a_base_exception_of_a_hook_is_raised_at_once_and_the_others_expire_in_the_next_step() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    log: list[str] = []

    stopping = purgatory.try_complete_else_watch(Gate(1.0, completing=raising(Stop())), ["key"])
    for name, timeout in (("same instant", 1.0), ("later", 3.0)):
        purgatory.try_complete_else_watch(logged_gate(timeout, name, log), ["key"])
    with pytest.raises(Stop):
        clock.advance(2.0)
    assert stopping.state is OperationState.FAILED
    clock.advance(10.0)
    assert log == ["same instant", "later"]
    purgatory.try_complete_else_watch(logged_gate(1.0, "new", log), ["key"])
    clock.advance(10.0)
    assert log == ["same instant", "later", "new"]
