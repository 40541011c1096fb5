"""Conditions that come true by time: `try_again_in`, and `wait_until` with `every`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from purgatory import DelayedOperation, OperationState, Purgatory, PurgatoryFull
from purgatory.testing import ManualClock
from tests.core.keys import Key
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, Stop, raising

PENDING, COMPLETED, EXPIRED = OperationState.PENDING, OperationState.COMPLETED, OperationState.EXPIRED


def tried_at(clock: ManualClock, gate: Gate) -> list[float]:
    """The times of the tries from now on."""
    times: list[float] = []
    trying = gate.trying

    def note() -> None:
        times.append(round(clock.time(), 6))
        if trying is not None:
            trying()

    gate.trying = note
    return times


def test_an_operation_is_tried_at_the_time_for_which_it_asks(clock: ManualClock, held: Purgatory) -> None:
    gate = Gate(10)
    gate.trying = lambda: gate.try_again_in(2) if clock.time() < 2 else None
    times = tried_at(clock, gate)
    held.try_complete_else_watch(gate, ["a"])
    clock.advance(1.9)
    assert times == [0]
    clock.advance(0.101)
    assert times == [0, 2]
    gate.opened = True
    assert gate.deadline == 10
    clock.advance(7)
    assert gate.state is PENDING
    clock.advance(1)
    assert (gate.state, times) == (EXPIRED, [0, 2])


def test_a_condition_that_came_true_by_time_completes(clock: ManualClock, held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(10), ["a"])
    assert gate.try_again_in(3)
    gate.opened = True
    clock.advance(3.001)
    assert (gate.state, gate.ran) == (COMPLETED, ["try_complete", "try_complete", "on_complete"])
    assert nothing_is_left(held)


def test_the_latest_call_counts(clock: ManualClock, held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(10), ["a"])
    times = tried_at(clock, gate)
    for seconds in (5, 1, 3, 2):
        gate.try_again_in(seconds)
    clock.advance(9)
    assert times == [2]


def test_none_ends_what_was_asked_for(clock: ManualClock, held: Purgatory) -> None:
    for timeout in (10, None):
        gate = held.try_complete_else_watch(Gate(timeout), ["a"])
        times = tried_at(clock, gate)
        gate.try_again_in(1)
        assert gate.try_again_in(None)
        clock.advance(5)
        assert times == []
        assert gate.state is PENDING
    clock.advance(10)
    assert not held.timer.armed


@pytest.mark.parametrize("seconds", [None, 5, 0.5])
def test_the_latest_call_counts_in_the_last_tick_before_the_deadline_too(
    clock: ManualClock, seconds: float | None
) -> None:
    held = clock.purgatory(tick=1)
    gate = held.try_complete_else_watch(Gate(1.25), ["a"])
    gate.try_again_in(1)
    clock.advance(0.25)
    gate.try_again_in(seconds)
    clock.advance(2)
    assert gate.ran == ["try_complete", "on_complete", "on_expiration"]


def test_none_leaves_no_timer_armed(clock: ManualClock, held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(None), ["a"])
    gate.try_again_in(1)
    gate.try_again_in(None)
    assert not held.timer.armed


@pytest.mark.parametrize("timeout", [1e300, float("inf")])
def test_an_operation_whose_timeout_no_timer_can_hold_waits_on_after_its_try(
    clock: ManualClock, held: Purgatory, timeout: float
) -> None:
    gate = held.try_complete_else_watch(Gate(timeout), ["a"])
    gate.try_again_in(1)
    clock.advance(2)
    assert (gate.state, gate.ran) == (PENDING, ["try_complete", "try_complete"])


def test_a_deadline_that_is_sooner_ends_the_wait(clock: ManualClock, held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(1), ["a"])
    gate.try_again_in(5)
    gate.opened = True
    clock.advance(1.001)
    assert (gate.state, gate.ran) == (EXPIRED, ["try_complete", "on_complete", "on_expiration"])


def test_an_operation_without_a_timeout_may_ask_again_and_again(clock: ManualClock, held: Purgatory) -> None:
    gate = Gate(None)
    gate.trying = lambda: gate.try_again_in(1)
    times = tried_at(clock, gate)
    held.try_complete_else_watch(gate, ["a"])
    clock.advance(3.5)
    assert times == [0, 1, 2, 3]
    assert gate.deadline is None
    gate.cancel()
    assert nothing_is_left(held)


@pytest.mark.parametrize("seconds", [0, -1, 1e-9])
def test_it_wakes_a_tick_from_now_at_the_earliest(
    clock: ManualClock, held: Purgatory, seconds: float
) -> None:
    gate = Gate(0.01)
    gate.trying = lambda: gate.try_again_in(seconds)
    times = tried_at(clock, gate)
    held.try_complete_else_watch(gate, ["a"])
    clock.advance(0.02)
    assert times[:3] == [0, 0.001, 0.002]
    assert gate.state is EXPIRED
    assert len(times) <= 11


def test_a_new_timeout_leaves_the_time_of_the_try_as_it_is(clock: ManualClock, held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(10), ["a"])
    times = tried_at(clock, gate)
    gate.try_again_in(5)
    clock.advance(1)
    gate.reschedule(20)
    clock.advance(5)
    assert times == [5]
    gate.try_again_in(10)
    gate.reschedule(2)
    clock.advance(2.001)
    assert (gate.state, times) == (EXPIRED, [5])


def test_a_new_timeout_in_every_tick_keeps_no_operation_from_its_try(clock: ManualClock) -> None:
    held = clock.purgatory(tick=1)
    gate = held.try_complete_else_watch(Gate(10), ["a"])
    times = tried_at(clock, gate)
    gate.try_again_in(2)
    for _ in range(8):
        clock.advance(0.5)
        gate.reschedule(10)
    assert times == [2]


def test_a_new_timeout_in_the_tick_of_the_try_leaves_it_as_it_is(clock: ManualClock) -> None:
    held = clock.purgatory(tick=1)
    gates = [held.try_complete_else_watch(Gate(10), ["a"]) for _ in range(2)]
    times = [tried_at(clock, gate) for gate in gates]
    gates[0].trying = lambda: gates[1].reschedule(20)
    for gate in gates:
        gate.try_again_in(2)
    clock.advance(5)
    assert times[1] == [2]
    clock.advance(10)
    assert gates[1].state is PENDING


def test_an_operation_without_a_timeout_gets_one_beside_others_that_wake(
    clock: ManualClock, held: Purgatory
) -> None:
    held.try_complete_else_watch(Gate(None), ["a"]).try_again_in(9)
    gate = held.try_complete_else_watch(Gate(None), ["a"])
    gate.reschedule(2)
    clock.advance(2.001)
    assert gate.timed_out


def test_a_check_leaves_the_time_of_the_try_as_it_is(clock: ManualClock, held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(10), ["a"])
    times = tried_at(clock, gate)
    gate.try_again_in(2)
    clock.advance(1)
    assert held.check_and_complete("a") == 0
    clock.advance(2)
    assert times == [1, 2]


def test_on_a_busy_loop_it_is_tried_before_it_expires(clock: ManualClock, held: Purgatory) -> None:
    gates = [held.try_complete_else_watch(Gate(2), [n]) for n in range(2)]
    for gate in gates:
        gate.try_again_in(1)
    gates[1].opened = True
    # The loop has been busy for five seconds.
    clock._now = 5
    held.timer.drive()
    assert gates[0].ran == ["try_complete", "try_complete", "on_complete", "on_expiration"]
    assert gates[1].state is COMPLETED
    assert nothing_is_left(held)


def test_a_refused_operation_forgets_what_it_asked_for(clock: ManualClock) -> None:
    purgatory = clock.purgatory(max_pending=1)
    first = purgatory.try_complete_else_watch(Gate(None), ["a"])
    gate = Gate(None)
    gate.trying = lambda: gate.try_again_in(1)
    with pytest.raises(PurgatoryFull):
        purgatory.try_complete_else_watch(gate, ["a"])
    assert gate.deadline is None
    first.cancel()
    gate.trying = None
    purgatory.try_complete_else_watch(gate, ["a"])
    times = tried_at(clock, gate)
    clock.advance(5)
    assert times == []


def test_a_key_that_refuses_keeps_nothing_of_what_was_asked_for(clock: ManualClock, held: Purgatory) -> None:
    key = Key("key", 1)
    gate = Gate(5)

    def ask() -> None:
        gate.try_again_in(1)
        key.hashing = raising(ValueError("bad"))

    gate.trying = ask
    with pytest.raises(ValueError, match="bad"):
        held.try_complete_else_watch(gate, [key])
    assert gate.deadline is None
    assert nothing_is_left(held)


def test_it_is_refused_before_the_offer_and_false_after_the_end(held: Purgatory) -> None:
    gate = Gate(10)
    with pytest.raises(RuntimeError, match=r"offer .* first"):
        gate.try_again_in(1)
    held.try_complete_else_watch(gate, ["a"])
    gate.force_complete()
    assert not gate.try_again_in(1)
    for wrong in ("1", float("nan")):
        with pytest.raises((TypeError, ValueError)):
            held.try_complete_else_watch(Gate(10), ["a"]).try_again_in(wrong)  # type: ignore[arg-type]  # on purpose


def test_a_try_that_raises_fails_the_operation_and_no_other(clock: ManualClock, held: Purgatory) -> None:
    gates = [held.try_complete_else_watch(Gate(10), [n]) for n in range(3)]
    for gate in gates:
        gate.try_again_in(1)
    gates[0].trying = raising(ValueError("bad"))
    gates[2].opened = True
    with pytest.raises(ExceptionGroup):
        clock.advance(2)
    assert [gate.state for gate in gates] == [OperationState.FAILED, PENDING, COMPLETED]


def test_an_interruption_of_such_a_try_leaves_the_books_right(clock: ManualClock, held: Purgatory) -> None:
    gates = [held.try_complete_else_watch(Gate(10), [n]) for n in range(2)]
    for gate in gates:
        gate.try_again_in(1)
    gates[0].trying = raising(Stop("now"))
    with pytest.raises(Stop):
        clock.advance(2)
    gates[1].opened = True
    assert held.check_and_complete(1) == 1
    assert nothing_is_left(held)


def test_such_a_try_may_end_other_operations_and_check(clock: ManualClock, held: Purgatory) -> None:
    others = [held.try_complete_else_watch(Gate(), ["other"]) for _ in range(3)]

    def act() -> None:
        for other in others:
            other.opened = True
        held.check_and_complete("other")

    gate = held.try_complete_else_watch(Gate(10), ["a"])
    gate.trying = act
    gate.try_again_in(1)
    clock.advance(1.001)
    assert [other.state for other in others] == [COMPLETED] * 3
    assert gate.state is PENDING


def test_a_call_in_the_method_of_a_key_waits_for_the_next_turn(clock: ManualClock, held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(10), ["a"])
    times = tried_at(clock, gate)
    key = Key("key", 1)
    other = held.try_complete_else_watch(Gate(10), [key])
    key.hashing = lambda: gate.try_again_in(1)
    other.cancel()
    key.hashing = None
    clock.advance(0)
    clock.advance(1.001)
    assert times == [1]


async def test_wait_until_looks_again_every_so_many_seconds(virtual_time: Any) -> None:
    calls: list[float] = []

    def predicate() -> bool:
        calls.append(virtual_time.time())
        return len(calls) == 4

    async with Purgatory() as purgatory:
        began = virtual_time.time()
        assert await purgatory.wait_until(predicate, ["a"], timeout=60, every=0.5)
        assert [round(call - began, 2) for call in calls] == [0, 0.5, 1, 1.5]


async def test_an_async_predicate_is_evaluated_again_every_so_many_seconds(virtual_time: Any) -> None:
    calls: list[float] = []

    async def predicate() -> bool:
        calls.append(virtual_time.time())
        return len(calls) == 3

    async with Purgatory() as purgatory:
        assert await purgatory.wait_until(predicate, ["a"], timeout=60, every=0.5)


@pytest.mark.parametrize("every", [0, -1, float("nan"), float("inf")])
async def test_wait_until_refuses_an_interval_that_is_not_positive(
    purgatory: Purgatory, every: float
) -> None:
    with pytest.raises(ValueError, match="every must be a positive number of seconds"):
        await purgatory.wait_until(lambda: False, ["a"], every=every)


class Modelled(DelayedOperation[None]):
    """Notes the times at which it is tried and ends."""

    def __init__(self, timeout: float | None, time: Callable[[], float]) -> None:
        super().__init__(timeout)
        self.time = time
        self.tried: list[float] = []
        self.ended: float | None = None

    def try_complete(self) -> bool:
        self.tried.append(self.time())
        return False

    def on_complete(self) -> None:
        self.ended = self.time()


@pytest.mark.parametrize("seed", range(20))
def test_random_times_of_tries_and_deadlines_are_as_a_model_says(seed: int) -> None:
    clock = ManualClock()
    held = clock.purgatory(tick=0.01, wheel_size=3)
    chance = random.Random(seed)
    # Times end in the middle of a tick, so that no rounding decides.

    def now() -> float:
        return round(clock.time() * 100)

    operations = [
        held.try_complete_else_watch(Modelled((chance.randint(1, 300) - 0.5) / 100, now), [0])
        for _ in range(9)
    ]
    deadlines = {operation: round((operation.timeout or 0) * 100 + 0.5) for operation in operations}
    wakes: dict[Modelled, int] = {}
    expected: dict[Modelled, list[int]] = {operation: [0] for operation in operations}
    for tick in range(400):
        for operation in operations:
            if tick == deadlines[operation]:
                assert operation.ended == tick
                wakes.pop(operation, None)
            elif wakes.get(operation) == tick:
                expected[operation].append(tick)
                del wakes[operation]
            assert operation.tried == expected[operation]
            if tick < min(deadlines[operation], 250) and chance.random() < 0.05:
                seconds = chance.randint(1, 100)
                if chance.random() < 0.3:
                    operation.reschedule((seconds - 0.5) / 100)
                    deadlines[operation] = tick + seconds
                    if wakes.get(operation, 0) >= deadlines[operation]:
                        del wakes[operation]
                else:
                    operation.try_again_in((seconds - 0.5) / 100)
                    # In the last tick before the deadline it is due anyway.
                    if deadlines[operation] > tick + 1:
                        wakes[operation] = tick + seconds
                        if wakes[operation] >= deadlines[operation]:
                            del wakes[operation]
        clock.advance(0.01)
    assert nothing_is_left(held)
