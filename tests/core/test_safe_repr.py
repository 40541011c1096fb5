"""Failures are reported and operations go on even if the repr() of a user's object raises."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest

from purgatory import OperationState, OperationWithdrawn, Purgatory
from purgatory._core.timer import TimerTask
from purgatory.errors import safe_repr
from purgatory.observer import Observer
from purgatory.testing import ManualClock
from tests.operations import Gate, a_few_turns, raising


class Nameless(Gate):
    """An operation whose repr() raises, as that of a half-initialized object may."""

    def __repr__(self) -> NoReturn:
        raise AttributeError("name")


NO_REPR = "<Nameless, whose repr() raised AttributeError>"


def test_safe_repr_is_the_repr_or_names_the_type_and_the_error() -> None:
    assert safe_repr("a") == "'a'"
    assert safe_repr(Nameless()) == NO_REPR


def test_safe_repr_of_an_object_that_reads_something_cancelled_names_the_type_and_the_error() -> None:
    class Job:
        def __repr__(self) -> NoReturn:
            raise asyncio.CancelledError

    assert safe_repr(Job()) == "<Job, whose repr() raised CancelledError>"


def test_a_try_that_raises_after_completing_does_not_end_the_check() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    broken = Nameless()
    others = [Gate(), Gate()]
    for gate in (others[0], broken, others[1]):
        purgatory.try_complete_else_watch(gate, ["key"])
        gate.opened = True
    broken.trying = lambda: broken.force_complete() and raising(ValueError("late"))()
    assert purgatory.check_and_complete("key") == 3
    assert [gate.state for gate in others] == [OperationState.COMPLETED] * 2
    with pytest.raises(ExceptionGroup) as told:
        clock.advance(0)
    assert [str(error) for error in told.value.exceptions] == ["late"]


async def test_the_exception_of_a_failed_operation_is_reported_to_the_loop(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    error = ValueError("of the hook")
    purgatory.try_complete_else_watch(Nameless(trying=raising(error)), ["key"])
    await a_few_turns()
    assert [(context["message"], context["exception"]) for context in reported] == [
        (f"{NO_REPR} failed and nobody awaited it", error)
    ]


async def test_awaiting_a_withdrawn_operation_names_its_class(purgatory: Purgatory) -> None:
    gate = purgatory.try_complete_else_watch(Nameless(), ["key"])
    gate.cancel()
    with pytest.raises(OperationWithdrawn, match="Nameless"):
        await gate
    with pytest.raises(asyncio.InvalidStateError, match="Nameless"):
        Nameless().exception()


async def test_a_predicate_that_does_not_hold_in_time_raises_timeout_error(purgatory: Purgatory) -> None:
    class Never:
        def __call__(self) -> bool:
            return False

        def __repr__(self) -> NoReturn:
            raise AttributeError("name")

    with pytest.raises(TimeoutError, match="Never"):
        await purgatory.wait_until(Never(), ["key"], 0)


async def test_an_observer_that_raises_is_reported(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    class Broken(Observer):
        def operation_finished(self, *_: object) -> NoReturn:
            raise ValueError("first")

        def key_checked(self, *_: object) -> NoReturn:
            raise ValueError("second")

        def __repr__(self) -> NoReturn:
            raise AttributeError("name")

    purgatory.add_observer(Broken())
    purgatory.try_complete_else_watch(Gate(opened=True), ["key"])
    purgatory.check_and_complete("key")
    assert [str(context["exception"]) for context in reported] == ["first", "second"]


@pytest.mark.usefixtures("virtual_time")
async def test_a_timer_task_that_raises_does_not_stop_the_reaper(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    class Task(TimerTask):
        def run(self) -> NoReturn:
            raise ValueError("due")

        def __repr__(self) -> NoReturn:
            raise AttributeError("name")

    for seconds in (0.1, 0.2):
        purgatory.timer.add(Task(), seconds)
    assert await purgatory.try_complete_else_watch(Gate(0.3), ["key"]) == "gate"
    assert [str(context["exception"]) for context in reported] == ["due"] * 2
