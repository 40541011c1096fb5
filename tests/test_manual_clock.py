"""The manual clock, on which users build their own tests."""

from __future__ import annotations

import contextvars
import math
import threading
import time
from collections.abc import Hashable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory import DelayedOperation, OperationState, PurgatoryClosed, PurgatoryFull
from purgatory.observer import Timing
from purgatory.testing import ManualClock
from tests.operations import Gate


def logged_gate(timeout: float, name: str, log: list[str]) -> Gate:
    """A gate that appends its name to `log` when it completes or expires."""
    return Gate(timeout, name, completing=lambda: log.append(name))


def test_ten_steps_of_a_tenth_make_one() -> None:
    clock = ManualClock()
    assert clock.time() == 0.0
    for _ in range(10):
        clock.advance(0.1)
    assert clock.time() == 1.0


def test_an_operation_expires_in_the_step_that_reaches_its_deadline() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    operation = purgatory.try_complete_else_watch(Gate(1.0), ["key"])
    for _ in range(9):
        clock.advance(0.1)
        assert operation.state is OperationState.PENDING
    clock.advance(0.1)
    assert operation.state is OperationState.EXPIRED
    assert operation.result() == "gate"


@pytest.mark.parametrize(
    ("tick", "timeout"), [(0.1, 0.3), (0.1, 0.7), (0.001, 0.3), (0.01, 0.29), (1 / 3, 1.0), (0.1, 1.1)]
)
def test_a_step_as_long_as_the_timeout_expires_it_and_a_shorter_one_does_not(
    tick: float, timeout: float
) -> None:
    clock = ManualClock()
    purgatory = clock.purgatory(tick=tick)
    operation = purgatory.try_complete_else_watch(Gate(timeout), ["key"])
    clock.advance(timeout - 0.0001)
    assert not operation.done
    clock.advance(0.0001)
    assert operation.expired


def test_a_clock_that_shows_the_time_of_the_machine_by_chance_is_still_moved_by_the_test_alone() -> None:
    clock = ManualClock()
    clock.advance(time.monotonic())
    purgatory = clock.purgatory()
    clock.advance(100)
    gate = purgatory.try_complete_else_watch(Gate(60), ["key"])
    assert gate.deadline == pytest.approx(clock.time() + 60, abs=0.01)


def test_hooks_see_the_time_of_their_own_deadlines_within_one_step() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    times: list[float] = []
    for timeout in (5.0, 0.5, 3.0):
        purgatory.try_complete_else_watch(
            Gate(timeout, completing=lambda: times.append(clock.time())), ["key"]
        )
    clock.advance(10.0)
    assert times == [0.5, 3.0, 5.0]
    assert clock.time() == 10.0


def test_operations_of_several_purgatories_expire_in_the_order_of_their_deadlines() -> None:
    clock = ManualClock()
    log: list[str] = []
    fetch, produce = clock.purgatory("fetch"), clock.purgatory("produce", tick=0.1)
    for purgatory, timeout in ((fetch, 1.0), (produce, 2.0), (fetch, 3.0), (produce, 0.5), (fetch, 2.5)):
        purgatory.try_complete_else_watch(logged_gate(timeout, f"{purgatory.name} {timeout}", log), ["key"])
    clock.advance(5.0)
    assert log == ["produce 0.5", "fetch 1.0", "produce 2.0", "fetch 2.5", "fetch 3.0"]


@pytest.mark.parametrize("seconds", [-0.1, -1e-9, -math.inf])
def test_time_cannot_go_back(seconds: float) -> None:
    clock = ManualClock()
    clock.advance(1.0)
    with pytest.raises(ValueError, match="time cannot go back"):
        clock.advance(seconds)
    assert clock.time() == 1.0


def test_a_step_of_zero_lets_no_time_pass() -> None:
    clock = ManualClock()
    clock.advance(1.0)
    clock.advance(0)
    assert clock.time() == 1.0


def test_it_takes_the_options_of_a_purgatory() -> None:
    checks: list[Hashable] = []

    class CheckLog:
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None: ...

        def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
            checks.append(key)

    clock = ManualClock()
    purgatory = clock.purgatory("small", tick=0.5, wheel_size=2, max_pending=1, observers=[CheckLog()])
    assert purgatory.name == "small"
    operation = purgatory.try_complete_else_watch(Gate(0.2), ["key"])
    with pytest.raises(PurgatoryFull):
        purgatory.try_complete_else_watch(Gate(0.2), ["key"])
    purgatory.check_and_complete("key")
    assert checks == ["key"]
    clock.advance(0.4)
    assert not operation.done
    clock.advance(0.1)
    assert operation.expired


def test_an_operation_offered_by_a_hook_expires_in_the_same_step_if_it_is_due() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    log: list[tuple[str, float]] = []

    def park(depth: int) -> None:
        log.append((f"depth {depth}", clock.time()))
        if depth < 20:
            purgatory.try_complete_else_watch(Gate(0.5, completing=lambda: park(depth + 1)), ["key"])

    park(0)
    clock.advance(5.0)
    assert log == [(f"depth {depth}", depth / 2) for depth in range(11)]
    assert purgatory.statistics().pending == 1


def test_a_check_from_a_thread_runs_at_the_next_step() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    operation = purgatory.try_complete_else_watch(Gate(1.0), ["key"])
    operation.opened = True
    thread = threading.Thread(target=purgatory.check_and_complete_threadsafe, args=["key"])
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert not operation.done
    clock.advance(0)
    assert operation.state is OperationState.COMPLETED


async def test_closing_one_of_its_purgatories_expires_what_is_pending_and_leaves_the_others() -> None:
    clock = ManualClock()
    closed, other = clock.purgatory("closed"), clock.purgatory("other")
    expired = closed.try_complete_else_watch(Gate(60.0), ["key"])
    stays = other.try_complete_else_watch(Gate(60.0), ["key"])
    await closed.aclose()
    assert expired.expired
    with pytest.raises(PurgatoryClosed):
        closed.try_complete_else_watch(Gate(60.0), ["key"])
    clock.advance(59.0)
    assert not stays.done
    clock.advance(1.0)
    assert stays.expired
    assert closed.statistics().wakeups == 0


def test_callbacks_of_call_soon_run_at_the_next_step_before_time_passes() -> None:
    clock = ManualClock()
    log: list[tuple[str, float]] = []

    def first() -> None:
        log.append(("first", clock.time()))
        clock.call_soon(log.append, ("second", clock.time()))

    clock.call_soon(first)
    assert log == []
    clock.advance(1.0)
    assert log == [("first", 0.0), ("second", 0.0)]


def test_a_callback_runs_with_its_arguments_and_context_unless_it_was_cancelled() -> None:
    clock = ManualClock()
    variable = contextvars.ContextVar("variable", default="outside")
    context = contextvars.copy_context()
    context.run(variable.set, "inside")
    log: list[tuple[str, str, float]] = []

    def note(name: str) -> None:
        log.append((name, variable.get(), clock.time()))

    clock.call_at(2.0, note, "in a context", context=context)
    clock.call_at(1.0, note, "plain")
    clock.call_at(1.5, note, "cancelled").cancel()
    clock.call_soon(note, "cancelled as well").cancel()
    clock.advance(3.0)
    assert log == [("plain", "outside", 1.0), ("in a context", "inside", 2.0)]


def test_callbacks_of_the_same_instant_run_in_the_order_of_their_calls() -> None:
    clock = ManualClock()
    log: list[int] = []
    for number in range(20):
        clock.call_at(1.0, log.append, number)
    clock.advance(1.0)
    assert log == list(range(20))


@given(
    st.lists(
        st.tuples(st.sampled_from([0.001, 0.1, 0.7, 1 / 3]), st.floats(1e-6, 20), st.floats(0, 5)),
        min_size=1,
        max_size=12,
    )
)
def test_operations_expire_neither_early_nor_a_tick_late(
    plan: list[tuple[float, float, float]],
) -> None:
    clock = ManualClock()
    lateness: list[tuple[float, float]] = []
    purgatories = {tick: clock.purgatory(tick=tick) for tick, _, _ in plan}

    def note(due: float, tick: float) -> None:
        lateness.append((clock.time() - due, tick))

    for tick, timeout, step in plan:
        due = clock.time() + timeout
        operation = Gate(timeout, completing=partial(note, due, tick))
        purgatories[tick].try_complete_else_watch(operation, ["key"])
        clock.advance(step)
    clock.advance(30)
    assert len(lateness) == len(plan)
    for late, tick in lateness:
        assert -1e-9 < late < tick + 1e-9
