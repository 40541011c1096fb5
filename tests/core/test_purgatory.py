"""Offering, checking, withdrawing, rescheduling and inspecting operations, and `wait_until`."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from purgatory import (
    OperationState,
    OperationWithdrawn,
    Purgatory,
    PurgatoryClosed,
    PurgatoryFull,
    PurgatoryStatistics,
)
from purgatory.testing import ManualClock
from tests.operations import Gate, raising

# Offering


def test_an_operation_whose_condition_holds_completes_at_once(held: Purgatory) -> None:
    gate = Gate(60, "at once", opened=True)
    assert held.try_complete_else_watch(gate, ["a", "b"]) is gate
    assert gate.state is OperationState.COMPLETED
    assert gate.ran == ["try_complete", "on_complete"]
    assert gate.keys == ("a", "b")
    figures = held.statistics()
    assert (figures.completed, figures.pending, figures.watched, figures.keys) == (1, 0, 0, 0)


@pytest.mark.parametrize("timeout", [0, 0.0, -1, -math.inf])
def test_an_operation_without_time_is_tried_once_and_expires_before_the_call_returns(
    held: Purgatory, timeout: float
) -> None:
    gate = held.try_complete_else_watch(Gate(timeout, "no time"), ["a"])
    assert gate.state is OperationState.EXPIRED
    assert gate.ran == ["try_complete", "on_complete", "on_expiration"]
    assert gate.result() == "no time"
    satisfied = held.try_complete_else_watch(Gate(timeout, opened=True), ["a"])
    assert satisfied.state is OperationState.COMPLETED
    figures = held.statistics()
    assert (figures.completed, figures.expired, figures.keys) == (1, 1, 0)


def test_a_timeout_too_small_for_the_clock_expires_before_the_call_returns(
    clock: ManualClock, held: Purgatory
) -> None:
    clock.advance(1_000)
    gate = held.try_complete_else_watch(Gate(1e-300), ["a", "b"])
    assert gate.state is OperationState.EXPIRED
    assert held.statistics().keys == 0
    assert not held.timer.armed


@pytest.mark.parametrize("timeout", [1e30, 1e300, 1.7e308])
def test_a_timeout_of_astronomical_length_never_expires(
    clock: ManualClock, held: Purgatory, timeout: float
) -> None:
    gate = held.try_complete_else_watch(Gate(timeout), ["a"])
    clock.advance(1e6)
    assert gate.state is OperationState.PENDING
    assert gate.cancel()
    assert held.statistics().keys == 0


KEYS: list[Callable[[], Iterable[Any]]] = [
    lambda: ["a", 2],
    lambda: ("a", 2),
    lambda: iter(["a", 2]),
    lambda: (key for key in ("a", 2)),
    lambda: {"a": 1, 2: 2},
    lambda: dict.fromkeys(["a", 2]).keys(),
    lambda: ["a", "a", 2, "a", 2.0],
]


@pytest.mark.parametrize("keys", KEYS)
def test_keys_may_be_any_iterable(held: Purgatory, keys: Callable[[], Iterable[Any]]) -> None:
    gate = held.try_complete_else_watch(Gate(), keys())
    assert gate.keys == ("a", 2)
    assert held.operations("a") == held.operations(2) == [gate]


def test_any_hashable_object_is_a_key(held: Purgatory) -> None:
    keys = [None, "", 0, b"x", ("topic", 3), frozenset({1}), 1.5, object(), Gate, len]
    gate = held.try_complete_else_watch(Gate(), keys)
    assert held.statistics().keys == len(keys)
    for key in keys:
        assert held.check_and_complete(key) == 0
    assert gate.ran == ["try_complete"] * (1 + len(keys))
    gate.opened = True
    assert held.check_and_complete(None) == 1
    assert held.statistics().keys == 0


def test_equal_keys_are_one_key(held: Purgatory) -> None:
    gates = [held.try_complete_else_watch(Gate(), [key]) for key in (1, True, 1.0)]
    assert held.statistics().keys == 1
    assert held.operations(True) == gates
    for gate in gates:
        gate.opened = True
    assert held.check_and_complete(1.0) == 3


def test_an_iterable_of_keys_that_raises_is_refused_whole(held: Purgatory) -> None:
    def broken() -> Iterable[str]:
        yield "a"
        raise OSError("no more keys")

    gate = Gate()
    with pytest.raises(OSError, match="no more keys"):
        held.try_complete_else_watch(gate, broken())
    assert gate.state is OperationState.NEW
    assert held.statistics().keys == 0
    assert held.try_complete_else_watch(gate, ["a"]).state is OperationState.PENDING


@pytest.mark.parametrize("end", [Gate.force_complete, Gate.cancel], ids=["completed", "withdrawn"])
def test_a_done_operation_is_refused(held: Purgatory, end: Callable[[Gate], bool]) -> None:
    gate = Gate()
    end(gate)
    ran = list(gate.ran)
    before = held.statistics()
    with pytest.raises(RuntimeError, match="has ended before it was offered"):
        held.try_complete_else_watch(gate, ["a"])
    assert gate.ran == ran
    assert held.statistics() == before


@pytest.mark.parametrize("where", ["same", "other"])
def test_offering_an_operation_again_inside_its_own_try_is_refused(
    clock: ManualClock, held: Purgatory, where: str
) -> None:
    second = held if where == "same" else clock.purgatory("other")

    def again() -> None:
        with pytest.raises(RuntimeError, match="offered before"):
            second.try_complete_else_watch(gate, ["b"])

    gate = Gate(trying=again)
    held.try_complete_else_watch(gate, ["a"])
    assert gate.state is OperationState.PENDING
    assert gate.keys == ("a",)
    assert held.operations() == [gate]
    assert held.statistics().watched == 1
    if second is not held:
        assert second.statistics().keys == 0
    held.check_and_complete("a")
    assert gate.ran == ["try_complete", "try_complete"]


def test_an_operation_knows_its_keys_inside_its_first_try(held: Purgatory) -> None:
    seen: list[tuple[Any, ...]] = []
    gate = Gate(60)
    gate.trying = lambda: seen.append((gate.state, gate.keys, held.operations("a")))
    held.try_complete_else_watch(gate, ["a", "b", "a"])
    assert seen == [(OperationState.NEW, ("a", "b"), [])]


# Back-pressure


@pytest.mark.parametrize("end", [Gate.force_complete, Gate.cancel, Gate.run])
def test_an_operation_makes_room_before_its_hooks_run(
    clock: ManualClock, end: Callable[[Gate], object]
) -> None:
    full = clock.purgatory(max_pending=1)
    replaced: list[Gate] = []
    gate = Gate(60, completing=lambda: replaced.append(full.try_complete_else_watch(Gate(60), ["a"])))
    full.try_complete_else_watch(gate, ["a"])
    end(gate)
    assert full.operations() == replaced
    assert len(replaced) == (end is not Gate.cancel)


def test_a_check_made_in_the_try_of_a_refused_operation_still_runs(clock: ManualClock) -> None:
    full = clock.purgatory(max_pending=1)
    waiting = full.try_complete_else_watch(Gate(), ["a"])
    waiting.opened = True
    with pytest.raises(PurgatoryFull):
        full.try_complete_else_watch(Gate(60, trying=lambda: full.check_and_complete("a")), ["b"])
    assert waiting.state is OperationState.COMPLETED
    assert full.statistics().pending == 0


# Checking


def test_a_check_completes_the_operations_whose_condition_holds_and_counts_them(held: Purgatory) -> None:
    gates = [held.try_complete_else_watch(Gate(60), ["a", n % 3]) for n in range(60)]
    for gate in gates[::2]:
        gate.opened = True
    assert held.check_and_complete("a") == 30
    assert [gate.done for gate in gates] == [True, False] * 30
    assert held.check_and_complete("a") == 0
    assert held.check_and_complete(1) == 0
    assert held.operations("a") == gates[1::2]


def test_an_unhashable_key_cannot_be_checked(held: Purgatory) -> None:
    with pytest.raises(TypeError):
        held.check_and_complete([])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        held.cancel_for_key([])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        held.operations([])  # type: ignore[arg-type]


def test_an_operation_that_is_ended_during_a_pass_is_not_tried(held: Purgatory) -> None:
    ends = [Gate.cancel, Gate.force_complete, Gate.run]
    others = [Gate() for _ in ends]

    def end_the_others() -> None:
        for end, other in zip(ends, others, strict=True):
            end(other)

    first = held.try_complete_else_watch(Gate(trying=None), ["a"])
    for other in others:
        held.try_complete_else_watch(other, ["a"])
    last = held.try_complete_else_watch(Gate(), ["a"])
    first.trying = end_the_others
    assert held.check_and_complete("a") == 0
    assert [other.state.name for other in others] == ["CANCELLED", "COMPLETED", "EXPIRED"]
    assert [other.ran.count("try_complete") for other in others] == [1, 1, 1]
    assert last.ran == ["try_complete"] * 2
    assert held.operations("a") == [first, last]


def test_a_pass_does_not_visit_operations_that_replace_all_others_of_the_key(held: Purgatory) -> None:
    newcomers: list[Gate] = []

    def replace() -> None:
        held.cancel_for_key("a")
        newcomers.append(held.try_complete_else_watch(Gate(), ["a"]))

    gates = [held.try_complete_else_watch(Gate(), ["a"]) for _ in range(40)]
    gates[20].trying = replace
    held.check_and_complete("a")
    assert [gate.ran for gate in newcomers] == [["try_complete"]]
    assert held.operations("a") == newcomers


# Withdrawing


def test_cancel_for_key_withdraws_from_all_keys_and_returns_the_operations_in_order(held: Purgatory) -> None:
    on_both = [held.try_complete_else_watch(Gate(60), ["a", "b"]) for _ in range(20)]
    on_b = [held.try_complete_else_watch(Gate(60), ["b"]) for _ in range(3)]
    on_a = [held.try_complete_else_watch(Gate(), ["a"]) for _ in range(3)]
    assert held.cancel_for_key("a") == on_both + on_a
    assert held.operations("b") == on_b
    assert held.cancel_for_key("a") == []
    assert {gate.state for gate in on_both + on_a} == {OperationState.CANCELLED}
    assert all(gate.ran == ["try_complete"] for gate in on_both + on_a)
    figures = held.statistics()
    assert (figures.cancelled, figures.pending, figures.watched, figures.keys) == (23, 3, 3, 1)


async def test_cancel_for_key_wakes_the_waiters(purgatory: Purgatory) -> None:
    async def wait() -> None:
        await purgatory.try_complete_else_watch(Gate(60), ["a", "b"])

    waits = [asyncio.create_task(wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert len(purgatory.cancel_for_key("b")) == 3
    await asyncio.wait(waits)
    errors = [task.exception() for task in waits]
    assert [str(error) for error in errors] == ["Gate was withdrawn by cancel_for_key()"] * 3
    assert {type(error) for error in errors} == {OperationWithdrawn}


# Inspecting


def test_operations_returns_a_snapshot(held: Purgatory) -> None:
    assert held.operations() == []
    assert held.operations("a") == []
    gates = [
        held.try_complete_else_watch(Gate(60), keys) for keys in (["a"], ["b", "a"], ["c"], ["a", "b", "c"])
    ]
    assert set(held.operations()) == set(gates)
    assert len(held.operations()) == 4
    assert held.operations("a") == [gates[0], gates[1], gates[3]]
    assert held.operations("b") == [gates[1], gates[3]]
    snapshot = held.operations("a")
    held.cancel_for_key("a")
    assert snapshot == [gates[0], gates[1], gates[3]]
    snapshot.clear()
    assert held.operations() == [gates[2]]


def test_statistics_are_frozen_and_complete(clock: ManualClock, held: Purgatory) -> None:
    counts = ["completed", "expired", "cancelled", "failed", "refused", "wakeups", "slices"]
    names = ["pending", "max_pending", "watched", "keys", *counts, "expired_untried", "missed_changes"]
    assert [field.name for field in dataclasses.fields(PurgatoryStatistics)] == names
    held.try_complete_else_watch(Gate(60), ["a", "b", "c"])
    held.try_complete_else_watch(Gate(60), ["a"])
    held.try_complete_else_watch(Gate(opened=True), ["a"])
    held.try_complete_else_watch(Gate(1), ["a"])
    held.try_complete_else_watch(Gate(), ["a"]).cancel()
    held.try_complete_else_watch(Gate(trying=raising(ValueError("bad"))), ["a"])
    before = held.statistics()
    with pytest.raises(ExceptionGroup):
        clock.advance(1)
    figures = held.statistics()
    assert before.expired == 0
    assert figures == PurgatoryStatistics(
        pending=2,
        max_pending=None,
        watched=4,
        keys=3,
        completed=1,
        expired=1,
        cancelled=1,
        failed=1,
        refused=0,
        wakeups=figures.wakeups,
        slices=0,
        expired_untried=1,
    )
    assert figures.wakeups >= 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        figures.pending = 5  # type: ignore[misc]
    assert not hasattr(figures, "__dict__")


def test_its_public_face_has_no_callbacks_of_the_core() -> None:
    public = {name for name in dir(Purgatory) if not name.startswith("_")}
    assert public == {
        *("aclose", "add_observer", "cancel_for_key", "check_and_complete", "check_and_complete_threadsafe"),
        *("closing", "complete_for_key", "count_watching", "fail_for_key", "name", "observe_keys", "open"),
        *("operations", "remove_observer", "run", "start", "statistics", "sweep", "timer"),
        *("try_complete_else_watch", "wait_until", "watch_also", "watched_keys", "watching"),
    }


async def test_none_is_a_key_like_any_other(purgatory: Purgatory) -> None:
    on_none = purgatory.try_complete_else_watch(Gate(), [None])
    other = purgatory.try_complete_else_watch(Gate(), ["a"])
    assert purgatory.operations(None) == purgatory.operations(key=None) == [on_none]
    assert purgatory.operations() == [on_none, other]


def test_reprs_are_one_line() -> None:
    purgatory = Purgatory("two\nlines")
    for shown in (
        purgatory,
        purgatory.timer,
        purgatory.timer.wheel,
        purgatory.statistics(),
        Gate(1),
    ):
        assert len(repr(shown).splitlines()) == 1
    assert repr(purgatory) == "<Purgatory 'two\\nlines' new pending=0 keys=0>"
    assert purgatory.name == "two\nlines"
    assert Purgatory().name == "purgatory"


# Rescheduling


def test_rescheduling_counts_from_now(clock: ManualClock, held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(10), ["a", "b"])
    clock.advance(9)
    assert gate.reschedule(10)
    assert gate.timeout == 10
    assert gate.deadline == 19
    clock.advance(9)
    assert gate.state is OperationState.PENDING
    clock.advance(1)
    assert gate.expired
    assert gate.ran == ["try_complete", "on_complete", "on_expiration"]


@pytest.mark.parametrize("timeout", [0, -1, -math.inf])
def test_rescheduling_to_now_expires_before_the_call_returns(held: Purgatory, timeout: float) -> None:
    gate = held.try_complete_else_watch(Gate(60), ["a", "b"])
    assert gate.reschedule(timeout)
    assert gate.expired
    assert gate.ran == ["try_complete", "on_complete", "on_expiration"]
    assert not gate.reschedule(60)
    assert held.statistics().keys == 0


@pytest.mark.parametrize("never", [None, math.inf, 1e300])
def test_rescheduling_to_never_and_back_expires_at_the_last_time(
    clock: ManualClock, held: Purgatory, never: float | None
) -> None:
    gate = held.try_complete_else_watch(Gate(5), ["a"])
    assert gate.reschedule(never)
    assert not gate.scheduled
    clock.advance(100)
    assert gate.state is OperationState.PENDING
    assert gate.reschedule(5)
    assert gate.deadline == 105
    clock.advance(5)
    assert gate.expired


def test_a_timeout_set_before_offering_counts_from_offering(clock: ManualClock, held: Purgatory) -> None:
    gate = Gate(5)
    assert gate.reschedule(50)
    assert gate.state is OperationState.NEW
    assert gate.deadline is None
    clock.advance(10)
    held.try_complete_else_watch(gate, ["a"])
    assert gate.deadline == 60
    expired = Gate(60)
    assert expired.reschedule(0)
    assert expired.state is OperationState.NEW
    assert held.try_complete_else_watch(expired, ["a"]).expired


@pytest.mark.parametrize("end", [Gate.force_complete, Gate.cancel, Gate.run])
def test_rescheduling_a_done_operation_changes_nothing(
    held: Purgatory, end: Callable[[Gate], object]
) -> None:
    gate = held.try_complete_else_watch(Gate(60), ["a"])
    end(gate)
    state = gate.state
    assert not gate.reschedule(5)
    assert not gate.reschedule(0)
    assert not gate.reschedule(None)
    assert gate.timeout == 60
    assert gate.state is state
    assert not gate.scheduled


def test_an_operation_may_be_rescheduled_inside_its_first_try(clock: ManualClock, held: Purgatory) -> None:
    later, now = Gate(1), Gate(60)
    later.trying = lambda: later.reschedule(30)
    now.trying = lambda: now.reschedule(0)
    held.try_complete_else_watch(later, ["a"])
    held.try_complete_else_watch(now, ["a"])
    assert later.deadline == 30
    assert now.expired


@pytest.mark.parametrize("timeout", [5, None, math.inf, 1e300], ids=str)
def test_a_due_operation_that_another_due_one_reschedules_waits_again(
    clock: ManualClock, held: Purgatory, timeout: float | None
) -> None:
    answers: list[bool] = []
    held.try_complete_else_watch(Gate(1, expiring=lambda: answers.append(second.reschedule(timeout))), ["a"])
    second = held.try_complete_else_watch(Gate(1), ["b"])
    clock.advance(1)
    assert answers == [True]
    assert second.state is OperationState.PENDING
    assert second.ran == ["try_complete"]
    clock.advance(5)
    assert second.expired == (timeout == 5)


def test_a_due_operation_that_another_due_one_ends_does_not_expire(
    clock: ManualClock, held: Purgatory
) -> None:
    gates = [Gate(1) for _ in range(3)]
    gates[0].expiring = lambda: (gates[1].cancel(), gates[2].force_complete())
    for gate in gates:
        held.try_complete_else_watch(gate, ["a"])
    clock.advance(1)
    assert [gate.state.name for gate in gates] == ["EXPIRED", "CANCELLED", "COMPLETED"]


# wait_until


async def test_wait_until_returns_a_value_that_is_there_already(purgatory: Purgatory) -> None:
    assert await purgatory.wait_until(lambda: "there", ["a"]) == "there"
    assert purgatory.statistics().completed == 1


async def test_wait_until_returns_the_first_truthy_value(purgatory: Purgatory) -> None:
    box: list[int] = []
    completed: list[int] = []

    def fill() -> None:
        purgatory.check_and_complete("box")
        box.append(7)
        purgatory.check_and_complete("other")
        completed.append(purgatory.check_and_complete("box"))
        box.append(8)

    asyncio.get_running_loop().call_soon(fill)
    assert await purgatory.wait_until(lambda: list(box), ["box", "lid"], timeout=60) == [7]
    assert completed == [1]
    assert purgatory.statistics().keys == 0


@pytest.mark.usefixtures("virtual_time")
async def test_wait_until_times_out(purgatory: Purgatory) -> None:
    looks: list[int] = []
    with pytest.raises(TimeoutError, match=r"first try, and nobody checked 'a' within 5\.0 seconds"):
        await purgatory.wait_until(lambda: looks.append(1), ["a"], timeout=5)
    assert looks == [1]
    assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.001)
    with pytest.raises(TimeoutError):
        await purgatory.wait_until(lambda: False, ["a"], timeout=0)
    assert await purgatory.wait_until(lambda: True, ["a"], timeout=0)


async def test_wait_until_raises_what_the_predicate_raises(purgatory: Purgatory) -> None:
    answers: list[Callable[[], bool]] = [lambda: False, raising(KeyError("gone"))]

    asyncio.get_running_loop().call_soon(purgatory.check_and_complete, "a")
    with pytest.raises(KeyError, match="gone"):
        await purgatory.wait_until(lambda: answers.pop(0)(), ["a"])
    assert purgatory.statistics().completed == 0
    with pytest.raises(ZeroDivisionError):
        await purgatory.wait_until(lambda: 1 / 0, ["a"])
    assert purgatory.statistics().failed == 2


@pytest.mark.parametrize(("cancel_pending", "error"), [(False, TimeoutError), (True, OperationWithdrawn)])
async def test_wait_until_ends_when_the_purgatory_closes(
    cancel_pending: bool, error: type[BaseException]
) -> None:
    purgatory = Purgatory()
    purgatory.start()

    async def wait() -> str:
        with pytest.raises(error) as caught:
            await purgatory.wait_until(lambda: False, ["a"])
        return str(caught.value)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    await purgatory.aclose(cancel_pending=cancel_pending)
    # The message names no timeout when there is none.
    assert "None seconds" not in await waiting


async def test_wait_until_refuses_what_offering_refuses(purgatory: Purgatory) -> None:
    with pytest.raises(ValueError, match="at least one key"):
        await purgatory.wait_until(lambda: True, [])
    with pytest.raises(TypeError, match="did you mean"):
        await purgatory.wait_until(lambda: True, "a")
    with pytest.raises(ValueError, match="NaN"):
        await purgatory.wait_until(lambda: True, ["a"], timeout=math.nan)
    with pytest.raises(PurgatoryClosed):
        await Purgatory().wait_until(lambda: True, ["a"])
    async with Purgatory(max_pending=1) as full:
        full.try_complete_else_watch(Gate(), ["a"])
        with pytest.raises(PurgatoryFull):
            await full.wait_until(lambda: False, ["a"])


@pytest.mark.usefixtures("collector_off")
async def test_wait_until_does_not_keep_the_value(purgatory: Purgatory) -> None:
    class Value:
        pass

    value = await purgatory.wait_until(Value, ["a"])
    ref = weakref.ref(value)
    del value
    assert ref() is None


async def test_it_says_whether_it_takes_operations_and_whether_it_ever_will_again() -> None:
    purgatory = Purgatory()
    said = [(purgatory.open, purgatory.closing)]
    async with purgatory:
        said.append((purgatory.open, purgatory.closing))
    said.append((purgatory.open, purgatory.closing))
    assert said == [(False, False), (True, False), (False, True)]
