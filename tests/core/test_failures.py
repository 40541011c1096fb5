"""Hooks that raise: exceptions fail one operation, base exceptions propagate, other operations go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from purgatory import DelayedOperation, OperationState, Purgatory, PurgatoryClosed, PurgatoryFull
from purgatory.testing import ManualClock
from tests.operations import Gate, Stop, a_few_turns, raising

ORDINARY = [
    ValueError("bad"),
    StopIteration("bad"),
    StopAsyncIteration("bad"),
    TimeoutError("bad"),
    RecursionError("bad"),
    PurgatoryFull("bad"),
    PurgatoryClosed("bad"),
    ExceptionGroup("bad", [ValueError("bad")]),
]
NOT_ORDINARY = [Stop("bad"), GeneratorExit("bad"), BaseExceptionGroup("bad", [Stop("bad")])]


class Quiet(Exception):
    """An exception whose truth value is False, as that of an empty collection of errors may be."""

    def __bool__(self) -> bool:
        return False


class QuietStop(Stop):
    def __bool__(self) -> bool:
        return False


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
def test_an_exception_in_the_first_try_fails_the_operation_and_nothing_is_watched(
    clock: ManualClock, held: Purgatory, error: Exception
) -> None:
    bad = held.try_complete_else_watch(Gate(60, trying=raising(error)), ["a", "b"])
    assert bad.state is OperationState.FAILED
    assert bad.ran == ["try_complete"]
    assert bad.keys == ("a", "b")
    assert books_are_right(held, failed=1, pending=0, watched=0, keys=0)
    assert told(clock) == [error]


@pytest.mark.parametrize("error", ORDINARY, ids=repr)
def test_an_exception_in_a_later_try_fails_the_operation_and_it_leaves_all_its_keys(
    clock: ManualClock, held: Purgatory, error: Exception
) -> None:
    bad = held.try_complete_else_watch(Gate(60), ["a", "b"])
    bad.trying = raising(error)
    assert held.check_and_complete("a") == 0
    assert bad.state is OperationState.FAILED
    assert bad.ran == ["try_complete"] * 2
    assert bad.keys == ("a", "b")
    assert not bad.scheduled
    assert books_are_right(held, failed=1, pending=0, watched=0, keys=0)
    assert told(clock) == [error]


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


def test_an_exception_with_a_false_truth_value_fails_the_operation(
    clock: ManualClock, held: Purgatory
) -> None:
    error = Quiet()
    bad = held.try_complete_else_watch(Gate(trying=raising(error)), ["a"])
    with pytest.raises(Quiet):
        bad.result()
    assert bad.exception() is error


async def test_the_first_base_exception_of_a_close_propagates_even_if_its_truth_value_is_false() -> None:
    purgatory = Purgatory()
    purgatory.start()
    first = QuietStop()
    for error in (first, Stop("second")):
        purgatory.try_complete_else_watch(Gate(60, completing=raising(error)), ["a"])
    with pytest.raises(Stop) as caught:
        await purgatory.aclose()
    assert caught.value is first
    assert purgatory.statistics().failed == 2


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


def test_a_hook_that_catches_the_exception_of_another_operation_goes_on(held: Purgatory) -> None:
    def end_the_other() -> None:
        with pytest.raises(Stop):
            other.force_complete()

    other = held.try_complete_else_watch(Gate(completing=raising(Stop())), ["b"])
    gate = held.try_complete_else_watch(Gate(trying=end_the_other, opened=True), ["a"])
    assert gate.state is OperationState.COMPLETED
    assert other.state is OperationState.FAILED
    assert books_are_right(held, completed=1, failed=1, keys=0)


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


async def test_a_failure_is_not_reported_when_the_operation_is_awaited_at_once(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    with pytest.raises(ValueError, match="bad"):
        await purgatory.try_complete_else_watch(Gate(60, trying=raising(ValueError("bad"))), ["a"])
    await a_few_turns()
    assert reported == []


Await = Callable[[Gate], Awaitable[object]]

AWAITING: dict[str, Await] = {
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


async def test_a_failure_is_reported_once_when_the_operation_is_completed_again(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    bad = purgatory.try_complete_else_watch(Gate(60, completing=raising(ValueError("bad"))), ["a"])
    bad.force_complete()
    bad.force_complete()
    await a_few_turns()
    assert len(reported) == 1


async def test_an_awaited_failure_also_reaches_a_task_that_awaits_later(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    bad = purgatory.try_complete_else_watch(Gate(60, completing=raising(ValueError("bad"))), ["a"])
    bad.force_complete()
    await a_few_turns()
    assert len(reported) == 1
    with pytest.raises(ValueError, match="bad"):
        await bad


# Base exceptions propagate


@pytest.mark.parametrize("error", NOT_ORDINARY, ids=repr)
def test_a_base_exception_in_the_first_try_propagates(held: Purgatory, error: BaseException) -> None:
    bad = Gate(60, trying=raising(error))
    with pytest.raises(type(error)) as caught:
        held.try_complete_else_watch(bad, ["a", "b"])
    assert caught.value is error
    assert bad.state is OperationState.FAILED
    assert bad.exception() is error
    assert books_are_right(held, failed=1, pending=0, watched=0, keys=0)


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


def test_the_next_check_also_checks_the_operations_that_a_base_exception_left_out(held: Purgatory) -> None:
    gates = [held.try_complete_else_watch(Gate(60), ["a"]) for _ in range(3)]
    other = held.try_complete_else_watch(Gate(60), ["b"])
    for gate in (*gates, other):
        gate.opened = True
    gates[0].trying = raising(Stop())
    with pytest.raises(Stop):
        held.check_and_complete("a")
    assert held.check_and_complete("b") == 3
    assert held.statistics().pending == 0


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


def test_a_base_exception_of_an_operation_that_a_hook_has_ended_harms_only_that_one(
    clock: ManualClock, held: Purgatory
) -> None:
    stop = Stop()
    inner = held.try_complete_else_watch(Gate(completing=raising(stop)), ["b"])
    outer = held.try_complete_else_watch(Gate(60, completing=inner.force_complete), ["a"])
    bystander = held.try_complete_else_watch(Gate(), ["a"])
    outer.opened = bystander.opened = True
    with pytest.raises(Stop):
        held.check_and_complete("a")
    assert inner.exception() is stop
    assert outer.state is OperationState.COMPLETED
    clock.advance(0)
    assert bystander.state is OperationState.COMPLETED
    assert books_are_right(held, failed=1, completed=2, pending=0, keys=0)


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


async def test_a_base_exception_in_a_threadsafe_check_ends_the_loop_and_loses_no_check() -> None:
    caught: list[BaseException] = []
    loop = asyncio.new_event_loop()

    async def main() -> list[Gate]:
        purgatory = Purgatory()
        purgatory.start()
        gates = [purgatory.try_complete_else_watch(Gate(60), [n]) for n in range(3)]
        for gate in gates:
            gate.opened = True
        gates[0].trying = raising(KeyboardInterrupt())
        for n in range(3):
            purgatory.check_and_complete_threadsafe(n)
        await asyncio.wait([asyncio.ensure_future(gate) for gate in gates[1:]])
        await purgatory.aclose()
        return gates

    def run() -> list[Gate]:
        task = loop.create_task(main())
        try:
            loop.run_until_complete(task)
        except KeyboardInterrupt as error:
            caught.append(error)
        gates = loop.run_until_complete(task)
        loop.close()
        return gates

    gates = await asyncio.to_thread(run)
    assert len(caught) == 1
    assert [gate.state.name for gate in gates] == ["FAILED", "COMPLETED", "COMPLETED"]


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


# Hooks that misbehave


def test_a_failing_operation_may_end_others_in_its_hooks(clock: ManualClock, held: Purgatory) -> None:
    def end_the_rest_and_fail() -> None:
        held.cancel_for_key("a")
        raise ValueError("bad")

    gates = [held.try_complete_else_watch(Gate(1), ["a", "b"]) for _ in range(40)]
    gates[20].completing = end_the_rest_and_fail
    gates[20].force_complete()
    assert [gate.state.name for gate in gates].count("CANCELLED") == 39
    assert gates[20].state is OperationState.FAILED
    assert len(told(clock, 1)) == 1
    assert books_are_right(held, cancelled=39, failed=1, keys=0)


def test_a_hundred_failing_operations_on_one_key_do_not_harm_two_hundred_others(
    clock: ManualClock, held: Purgatory
) -> None:
    gates: list[DelayedOperation[Any]] = []
    for n in range(300):
        gate = held.try_complete_else_watch(Gate(60), ["a", n])
        gate.opened = True
        if n % 3 == 0:
            gate.trying = raising(ValueError(n))
        gates.append(gate)
    assert held.check_and_complete("a") == 200
    assert len(told(clock)) == 100
    assert books_are_right(held, completed=200, failed=100, pending=0, keys=0)
