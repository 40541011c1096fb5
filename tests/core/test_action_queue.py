"""Checks that are made inside hooks are queued; these tests cover their order and when they run."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any, TypeVarTuple

import pytest

from purgatory import Purgatory
from purgatory._core.action_queue import action_queue_of
from purgatory.observer import Timing
from purgatory.testing import ManualClock
from tests.conftest import LoopFactory
from tests.operations import Gate, Stop, raising

Ts = TypeVarTuple("Ts")


class CountingClock(ManualClock):
    def __init__(self) -> None:
        self.called_soon = 0
        super().__init__()

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self.called_soon += 1
        return super().call_soon(callback, *args, context=context)


def test_queued_checks_run_in_the_order_in_which_they_were_made_across_purgatories() -> None:
    def ask() -> None:
        for purgatory, key in asked:
            assert purgatory.check_and_complete(key) == 0

    clock = ManualClock()
    first, second = clock.purgatory("first"), clock.purgatory("second")
    order: list[tuple[str, str]] = []
    for purgatory in (first, second):
        for key in "xyz":
            gate = purgatory.try_complete_else_watch(Gate(), [key])
            gate.trying = partial(order.append, (purgatory.name, key))
    asked = [(second, "y"), (first, "x"), (second, "x"), (first, "x"), (second, "y"), (first, "z")]
    first.try_complete_else_watch(Gate(trying=ask), ["elsewhere"])
    assert order == [("second", "y"), ("first", "x"), ("second", "x"), ("first", "z")]


def test_a_check_that_is_made_again_after_it_has_begun_runs_again() -> None:
    purgatory = ManualClock().purgatory()
    rounds: list[int] = []

    def ask_three_times() -> None:
        rounds.append(len(rounds))
        if len(rounds) < 4:
            for key in ("key", "other"):
                assert purgatory.check_and_complete(key) == 0

    gate = purgatory.try_complete_else_watch(Gate(), ["key"])
    gate.trying = ask_three_times
    purgatory.check_and_complete("key")
    assert rounds == [0, 1, 2, 3]


def test_queued_checks_go_breadth_first() -> None:
    """In a tree whose operations complete their two children, each generation completes before the next."""
    purgatory = ManualClock().purgatory()
    order: list[int] = []

    def light_children(number: int) -> None:
        order.append(number)
        for child in (2 * number, 2 * number + 1):
            if child < 64:
                gates[child].opened = True
                purgatory.check_and_complete(child)

    gates = {
        number: purgatory.try_complete_else_watch(Gate(completing=partial(light_children, number)), [number])
        for number in range(1, 64)
    }
    gates[1].opened = True
    assert purgatory.check_and_complete(1) == 63
    assert order == list(range(1, 64))


@pytest.mark.parametrize("outermost", ["offer", "check", "force", "cancel", "reschedule", "due", "signal"])
def test_every_outermost_call_runs_the_checks_that_its_hooks_made(outermost: str) -> None:
    class Asking:
        def operation_finished(self, purgatory: str, operation: object, timing: Timing) -> None:
            held.check_and_complete("inner")

        def key_checked(self, purgatory: str, key: object, tried: int, completed: int, at: float) -> None:
            pass

    def signal() -> None:
        held.check_and_complete_threadsafe("outer")
        clock.advance(0)

    clock = ManualClock()
    held = clock.purgatory(observers=[Asking()])
    inner = held.try_complete_else_watch(Gate(), ["inner"])
    inner.opened = True
    outer = Gate(1)
    if outermost == "offer":
        outer.opened = True
        held.try_complete_else_watch(outer, ["outer"])
    else:
        held.try_complete_else_watch(outer, ["outer"])
        outer.opened = True
        acts: dict[str, Callable[[], object]] = {
            "check": lambda: held.check_and_complete("outer"),
            "force": outer.force_complete,
            "cancel": outer.cancel,
            "reschedule": lambda: outer.reschedule(0),
            "due": lambda: clock.advance(1),
            "signal": signal,
        }
        acts[outermost]()
    assert outer.done
    assert inner.done
    assert held.statistics().pending == 0


def test_a_base_exception_with_an_empty_queue_schedules_nothing_on_the_loop() -> None:
    clock = CountingClock()
    purgatory = clock.purgatory()
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(Stop())), ["key"])
    with pytest.raises(Stop):
        gate.force_complete()
    assert clock.called_soon == 0


def test_a_base_exception_inside_a_hook_leaves_queued_checks_to_the_outermost_call() -> None:
    def ask_and_survive() -> None:
        purgatory.check_and_complete("inner")
        with pytest.raises(Stop):
            bad.force_complete()
        assert not inner.done

    clock = ManualClock()
    purgatory = clock.purgatory()
    inner = purgatory.try_complete_else_watch(Gate(), ["inner"])
    inner.opened = True
    bad = purgatory.try_complete_else_watch(Gate(completing=raising(Stop())), ["bad"])
    outer = purgatory.try_complete_else_watch(Gate(), ["outer"])
    outer.trying = ask_and_survive
    assert purgatory.check_and_complete("outer") == 1
    assert inner.done
    # Nothing is left for the next turn.
    clock.advance(0)
    assert purgatory.statistics().pending == 1


def test_each_loop_has_one_queue_of_its_own() -> None:
    one: Any = ManualClock()
    other: Any = ManualClock()
    assert action_queue_of(one) is action_queue_of(one)
    assert action_queue_of(one) is not action_queue_of(other)
    answers: list[int] = []
    there = other.purgatory().try_complete_else_watch(Gate(), ["key"])
    there.opened = True
    purgatory = other.purgatory("second")
    waiting = purgatory.try_complete_else_watch(Gate(), ["key"])
    waiting.opened = True
    one.purgatory().try_complete_else_watch(
        Gate(trying=lambda: answers.append(purgatory.check_and_complete("key"))), ["a"]
    )
    # The hook runs on one loop, so a check on the other loop runs at once.
    assert answers == [1]


def test_a_queue_does_not_keep_its_loop_alive() -> None:
    clock = ManualClock()
    purgatory: Purgatory = clock.purgatory()
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    purgatory.try_complete_else_watch(Gate(60), ["a"])
    ref = weakref.ref(clock)
    del clock, purgatory
    gc.collect()
    assert ref() is None


def test_a_hook_that_raises_on_a_closed_loop_leaves_what_waits_undone(loop_factory: LoopFactory) -> None:
    def ask_and_raise() -> None:
        purgatory.check_and_complete("inner")
        raise Stop

    loop = loop_factory()
    purgatory = Purgatory()
    purgatory._open_on(loop)
    loop.close()
    inner = purgatory.try_complete_else_watch(Gate(), ["inner"])
    inner.opened = True
    with pytest.raises(Stop):
        purgatory.try_complete_else_watch(Gate(trying=ask_and_raise), ["outer"])
    assert not inner.done
    # The next outermost call does it.
    purgatory.try_complete_else_watch(Gate(), ["another"])
    assert inner.done
