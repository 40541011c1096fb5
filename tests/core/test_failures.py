"""Hooks that raise: exceptions fail one operation, base exceptions propagate, other operations go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from purgatory import OperationState, Purgatory, PurgatoryClosed, PurgatoryFull
from purgatory.testing import ManualClock
from tests.operations import Gate, Stop, a_few_turns, raising


class Quiet(Exception):
    """An exception whose truth value is False, as that of an empty collection of errors may be."""

    def __bool__(self) -> bool:
        return False


class QuietStop(Stop):
    def __bool__(self) -> bool:
        return False


ORDINARY = [
    ValueError("bad"),
    StopIteration("bad"),
    StopAsyncIteration("bad"),
    TimeoutError("bad"),
    RecursionError("bad"),
    PurgatoryFull("bad"),
    PurgatoryClosed("bad"),
    ExceptionGroup("bad", [ValueError("bad")]),
    Quiet("bad"),
]
NOT_ORDINARY = [QuietStop("bad"), GeneratorExit("bad"), BaseExceptionGroup("bad", [Stop("bad")])]


def told(clock: ManualClock, seconds: float = 0) -> list[Exception]:
    """Advance the clock, and return the exceptions that a loop's exception handler would have got."""
    try:
        clock.advance(seconds)
    except ExceptionGroup as group:
        return list(group.exceptions)
    return []


def books_are_right(purgatory: Purgatory, **expected: int) -> bool:
    """Whether the statistics are as expected, and no check is stuck in the queue: a new one runs at once."""
    figures = purgatory.statistics()
    probe = purgatory.try_complete_else_watch(Gate(), ["probe"])
    probe.opened = True
    return {name: getattr(figures, name) for name in expected} == expected and purgatory.check_and_complete(
        "probe"
    ) == 1


# Exceptions stay with the operation


@pytest.mark.parametrize("error", ORDINARY, ids=repr)
@pytest.mark.parametrize("later", [False, True])
def test_an_exception_in_a_try_fails_the_operation_and_nothing_is_watched(
    clock: ManualClock, held: Purgatory, error: Exception, later: bool
) -> None:
    bad = Gate(60, trying=None if later else raising(error))
    held.try_complete_else_watch(bad, ["a", "b"])
    if later:
        bad.trying = raising(error)
        assert held.check_and_complete("a") == 0
    assert (bad.state, bad.exception()) == (OperationState.FAILED, error)
    assert bad.ran == ["try_complete"] * (1 + later)
    assert bad.keys == ("a", "b")
    assert not bad.scheduled
    assert books_are_right(held, failed=1, pending=0, watched=0, keys=0)
    # Somebody has seen it.
    assert told(clock) == []


@pytest.mark.parametrize("error", ORDINARY, ids=repr)
@pytest.mark.parametrize("when", ["first try", "check", "force", "due", "rescheduled"])
def test_an_exception_in_on_complete_fails_the_operation(
    clock: ManualClock, held: Purgatory, when: str, error: Exception
) -> None:
    bad = Gate(1, completing=raising(error), opened=when == "first try")
    held.try_complete_else_watch(bad, ["a", "b"])
    reports: list[Exception] = []
    if when == "check":
        bad.opened = True
        assert held.check_and_complete("a") == 0
    elif when == "force":
        assert bad.force_complete()
    elif when == "due":
        reports += told(clock, 1)
    elif when == "rescheduled":
        assert bad.reschedule(0)
    assert bad.state is OperationState.FAILED
    assert bad.ran[-1] == "on_complete"
    assert not bad.expired
    assert books_are_right(held, failed=1, pending=0, keys=0)
    assert reports + told(clock) == [error]


@pytest.mark.parametrize(
    "error", [error for error in ORDINARY if not isinstance(error, TimeoutError)], ids=repr
)
def test_an_exception_in_on_expiration_fails_the_operation(
    clock: ManualClock, held: Purgatory, error: Exception
) -> None:
    bad = held.try_complete_else_watch(Gate(1, expiring=raising(error)), ["a", "b"])
    assert told(clock, 1) == [error]
    assert bad.state is OperationState.FAILED
    assert bad.ran == ["try_complete", "on_complete", "on_expiration"]
    assert bad.exception() is error
    assert books_are_right(held, failed=1, expired=0, pending=0, keys=0)


def test_a_check_made_by_a_hook_that_then_raises_still_runs(clock: ManualClock, held: Purgatory) -> None:
    def ask_and_fail() -> None:
        held.check_and_complete("other")
        raise ValueError("bad")

    for hook in ("trying", "completing", "expiring"):
        waiting = held.try_complete_else_watch(Gate(), ["other"])
        waiting.opened = True
        bad = held.try_complete_else_watch(Gate(1), ["a"])
        setattr(bad, hook, ask_and_fail)
        if hook == "trying":
            assert held.check_and_complete("a") == 1
        else:
            bad.reschedule(0)
        assert bad.state is OperationState.FAILED
        assert waiting.state is OperationState.COMPLETED
    assert len(told(clock)) == 3


def test_an_exception_in_a_hook_after_the_operation_has_ended_is_reported_and_changes_nothing(
    clock: ManualClock, held: Purgatory
) -> None:
    error = ValueError("afterthought")
    outcomes = []
    for end in (Gate.force_complete, Gate.cancel, Gate.run):
        gate = held.try_complete_else_watch(Gate(60), ["a"])

        def end_and_raise(gate: Gate = gate, end: Callable[[Gate], object] = end) -> None:
            end(gate)
            raise error

        gate.trying = end_and_raise
        held.check_and_complete("a")
        outcomes.append(gate.state.name)
        assert told(clock) == [error]
    assert outcomes == ["COMPLETED", "CANCELLED", "EXPIRED"]
    assert books_are_right(held, completed=1, cancelled=1, expired=1, failed=0, keys=0)


# Who gets the exception


async def test_a_failure_is_reported_when_no_task_awaits_the_operation(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    error = ValueError("bad")
    bad = purgatory.try_complete_else_watch(Gate(60, trying=raising(error)), ["a"])
    assert reported == []
    await a_few_turns()
    assert [context["exception"] for context in reported] == [error]
    assert repr(bad) in reported[0]["message"]


Await = Callable[[Gate], Awaitable[object]]

AWAITING: dict[str, Await] = {
    "await": lambda gate: gate,
    "gather": lambda gate: asyncio.gather(gate, return_exceptions=True),
    "wait_for": lambda gate: asyncio.wait_for(gate, 60),
    "shield": asyncio.shield,
    "ensure_future": asyncio.ensure_future,
}


@pytest.mark.parametrize("wait", AWAITING.values(), ids=AWAITING.keys())
async def test_a_failure_is_not_reported_when_a_task_created_at_once_awaits_it(
    purgatory: Purgatory, reported: list[dict[str, Any]], wait: Await
) -> None:
    bad = purgatory.try_complete_else_watch(Gate(60, trying=raising(ValueError("bad"))), ["a"])
    with suppress(ValueError):
        await wait(bad)
    await a_few_turns()
    with pytest.raises(ValueError, match="bad"):
        bad.result()
    assert reported == []


@pytest.mark.parametrize("look", [Gate.result, Gate.exception], ids=["result", "exception"])
async def test_a_failure_is_not_reported_when_its_exception_is_read(
    purgatory: Purgatory, reported: list[dict[str, Any]], look: Callable[[Gate], object]
) -> None:
    bad = purgatory.try_complete_else_watch(Gate(60, trying=raising(ValueError("bad"))), ["a"])
    with suppress(ValueError):
        look(bad)
    await a_few_turns()
    assert reported == []


# Base exceptions propagate


@pytest.mark.parametrize("error", NOT_ORDINARY, ids=repr)
@pytest.mark.parametrize("when", ["first try", "check", "force", "cancelled", "rescheduled", "no time"])
def test_a_base_exception_in_on_complete_propagates(held: Purgatory, when: str, error: BaseException) -> None:
    bad = Gate(0 if when == "no time" else 60, completing=raising(error), opened=when == "first try")
    if when in ("first try", "no time"):
        with pytest.raises(type(error)):
            held.try_complete_else_watch(bad, ["a", "b"])
    else:
        held.try_complete_else_watch(bad, ["a", "b"])
        bad.opened = True
        acts: dict[str, Callable[[], object]] = {
            "check": lambda: held.check_and_complete("b"),
            "force": bad.force_complete,
            "rescheduled": lambda: bad.reschedule(0),
        }
        if when == "cancelled":
            assert bad.cancel()
        else:
            with pytest.raises(type(error)):
                acts[when]()
    failed = when != "cancelled"
    assert bad.state is (OperationState.FAILED if failed else OperationState.CANCELLED)
    assert books_are_right(held, failed=int(failed), pending=0, watched=0, keys=0)


def test_a_base_exception_in_the_middle_of_a_pass_keeps_no_operation_from_being_checked(
    clock: ManualClock, held: Purgatory
) -> None:
    gates = [held.try_complete_else_watch(Gate(60, str(n)), ["a", n]) for n in range(50)]
    for gate in gates:
        gate.opened = True
    gates[20].trying = raising(Stop())
    with pytest.raises(Stop):
        held.check_and_complete("a")
    assert [gate.done for gate in gates] == [True] * 21 + [False] * 29
    clock.advance(0)
    assert [gate.state for gate in gates].count(OperationState.COMPLETED) == 49
    assert books_are_right(held, completed=49, failed=1, pending=0, keys=0)


def test_checks_queued_before_a_base_exception_are_not_lost(clock: ManualClock, held: Purgatory) -> None:
    def ask_and_stop() -> None:
        for key in ("b", "c"):
            assert held.check_and_complete(key) == 0
        raise Stop

    for hook in ("trying", "completing", "expiring"):
        waiting = [held.try_complete_else_watch(Gate(), [key]) for key in ("b", "c")]
        for gate in waiting:
            gate.opened = True
        bad = held.try_complete_else_watch(Gate(60), ["a"])
        setattr(bad, hook, ask_and_stop)
        with pytest.raises(Stop):
            held.check_and_complete("a") if hook == "trying" else bad.reschedule(0)
        assert [gate.done for gate in waiting] == [False, False]
        clock.advance(0)
        assert [gate.done for gate in waiting] == [True, True]
    assert books_are_right(held, failed=3, completed=6, pending=0, keys=0)


def test_a_base_exception_in_a_queued_check_propagates_and_the_rest_of_the_queue_runs(
    clock: ManualClock, held: Purgatory
) -> None:
    def ask() -> None:
        for key in ("b", "c", "d"):
            held.check_and_complete(key)

    gates = [held.try_complete_else_watch(Gate(), [key]) for key in ("b", "c", "d")]
    for gate in gates:
        gate.opened = True
    gates[1].trying = raising(Stop())
    first = held.try_complete_else_watch(Gate(completing=ask), ["a"])
    first.opened = True
    with pytest.raises(Stop):
        held.check_and_complete("a")
    assert [gate.done for gate in gates] == [True, True, False]
    clock.advance(0)
    assert [gate.done for gate in gates] == [True, True, True]
    assert books_are_right(held, completed=3, failed=1, pending=0, keys=0)


def test_a_base_exception_of_an_operation_that_a_hook_has_ended_goes_up_and_harms_no_other(
    clock: ManualClock, held: Purgatory
) -> None:
    def end_both() -> None:
        assert inner.force_complete()
        assert last.force_complete()

    stop = Stop()
    inner, last = (
        held.try_complete_else_watch(Gate(completing=raising(each)), ["b"]) for each in (stop, Stop())
    )
    outer = held.try_complete_else_watch(Gate(60, completing=end_both), ["a"])
    bystander = held.try_complete_else_watch(Gate(), ["a"])
    outer.opened = bystander.opened = True
    with pytest.raises(Stop) as caught:
        held.check_and_complete("a")
    assert caught.value is stop
    assert inner.exception() is stop
    assert outer.state is OperationState.COMPLETED
    clock.advance(0)
    assert bystander.state is OperationState.COMPLETED
    assert books_are_right(held, failed=2, completed=2, pending=0, keys=0)


def test_a_base_exception_of_a_due_operation_keeps_no_other_due_one_from_expiring(
    clock: ManualClock, held: Purgatory
) -> None:
    gates = [held.try_complete_else_watch(Gate(1, str(n)), ["a", n]) for n in range(100)]
    gates[40].expiring = raising(Stop())
    with pytest.raises(Stop):
        clock.advance(1)
    clock.advance(1)
    assert [gate.state for gate in gates].count(OperationState.EXPIRED) == 99
    assert books_are_right(held, expired=99, failed=1, pending=0, keys=0)


async def test_a_base_exception_in_a_sweep_propagates_and_the_operations_behind_it_are_checked(
    purgatory: Purgatory,
) -> None:
    gates = [purgatory.try_complete_else_watch(Gate(60), ["a"]) for _ in range(50)]
    for gate in gates:
        gate.opened = True
    gates[20].trying = raising(Stop())
    with pytest.raises(Stop):
        await purgatory.sweep("a")
    await a_few_turns()
    assert [gate.state for gate in gates].count(OperationState.COMPLETED) == 49
    assert books_are_right(purgatory, completed=49, failed=1, pending=0, keys=0)


async def test_a_keyboard_interrupt_in_the_reaper_ends_the_loop_and_leaves_no_waiter_hanging() -> None:
    loop = asyncio.new_event_loop()
    outcomes: list[str] = []

    async def main() -> None:
        purgatory = Purgatory()
        purgatory.start()
        purgatory.try_complete_else_watch(Gate(0.001, expiring=raising(KeyboardInterrupt())), ["a"])
        try:
            await purgatory.try_complete_else_watch(Gate(60), ["a"])
        except PurgatoryClosed as error:
            outcomes.append(type(error.__cause__).__name__)

    def run() -> None:
        loop.set_exception_handler(lambda _, context: outcomes.append(context["message"]))
        task = loop.create_task(main())
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(task)
        loop.run_until_complete(task)
        loop.close()

    await asyncio.to_thread(run)
    assert "KeyboardInterrupt" in outcomes
    assert "the reaper of purgatory 'purgatory' failed; it is closed" in outcomes
