"""Reports arrive, and waits go on, whatever the repr() of a user's object does."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest

from purgatory import OperationState, Purgatory
from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer import TimerTask
from purgatory.observer import Observer
from purgatory.testing import ManualClock
from tests.operations import Gate, a_few_turns, raising


class Nameless(Gate):
    """One whose account of itself fails, as it may of a half-broken object."""

    def __repr__(self) -> NoReturn:
        raise AttributeError("name")


NO_REPR = "<Nameless, whose repr() raised AttributeError>"


def test_an_object_is_described_by_its_repr_or_by_what_it_is() -> None:
    assert safe_repr("a") == "'a'"
    assert safe_repr(Nameless()) == NO_REPR


def test_a_try_that_raises_after_it_completed_ends_no_check() -> None:
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


async def test_what_ended_an_operation_is_told_to_the_loop(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    error = ValueError("of the hook")
    purgatory.try_complete_else_watch(Nameless(trying=raising(error)), ["key"])
    await a_few_turns()
    assert [(context["message"], context["exception"]) for context in reported] == [
        (f"{NO_REPR} failed and nobody awaited it", error)
    ]


async def test_who_awaits_a_withdrawn_operation_is_cancelled(purgatory: Purgatory) -> None:
    gate = purgatory.try_complete_else_watch(Nameless(), ["key"])
    gate.cancel()
    with pytest.raises(asyncio.CancelledError, match="Nameless"):
        await gate
    with pytest.raises(asyncio.InvalidStateError, match="Nameless"):
        Nameless().exception()


async def test_a_predicate_that_did_not_hold_in_time_is_a_timeout(purgatory: Purgatory) -> None:
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
async def test_a_task_of_the_timer_that_raises_does_not_stop_the_reaper(
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
