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
from purgatory._core.action_queue import ROUNDS, action_queue_of
from purgatory.observer import Timing
from purgatory.testing import ManualClock
from tests.conftest import LoopFactory
from tests.operations import Gate, Stop, a_few_turns, raising

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


# Checks that ask for checks, while nothing ends


def checking(purgatory: Purgatory, *keys: str) -> tuple[Callable[[], bool], list[None]]:
    """A condition that checks the keys and does not hold, and a list that grows with each of its tries."""
    tries: list[None] = []

    def try_it() -> bool:
        tries.append(None)
        for key in keys:
            purgatory.check_and_complete(key)
        return False

    return try_it, tries


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("others", [[], ["other", "nobody waits for it"]])
async def test_a_condition_that_checks_its_own_key_keeps_nobody_from_running(
    others: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with Purgatory() as purgatory:
        condition, tries = checking(purgatory, *others, "k")
        neighbour = purgatory.try_complete_else_watch(Gate(0.05), ["other"])
        waiting = asyncio.create_task(purgatory.wait_until(condition, ["k"], timeout=0.1))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await waiting
        assert neighbour.expired
        assert len(tries) > 1
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "PredicateOperation" in warning.message
    assert "asks for a check of 'k' whenever it is tried, and nothing ends" in warning.message
    assert (warning.__dict__["kind"], warning.__dict__["keys"]) == ("PredicateOperation", ("k",))


@pytest.mark.usefixtures("virtual_time")
async def test_two_conditions_that_check_each_others_key_keep_nobody_from_running() -> None:
    async with Purgatory() as first, Purgatory() as second:
        waits = [
            asyncio.create_task(first.wait_until(checking(second, "b")[0], ["a"], timeout=0.1)),
            asyncio.create_task(second.wait_until(checking(first, "a")[0], ["b"], timeout=0.2)),
        ]
        ended = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(end) for end in ended] == [TimeoutError, TimeoutError]


@pytest.mark.parametrize("debug", [True, False])
async def test_debug_mode_says_at_once_that_a_condition_checks_its_own_key(
    debug: bool, caplog: pytest.LogCaptureFixture
) -> None:
    left = 5

    def check() -> None:
        nonlocal left
        if left:
            left -= 1
            purgatory.check_and_complete("k")

    async with Purgatory(debug=debug) as purgatory:
        purgatory.try_complete_else_watch(Gate(trying=check), ["k"])
        await a_few_turns()
    warnings = [record.message for record in caplog.records if "and nothing ends" in record.message]
    assert len(warnings) == (1 if debug else 0)


def test_a_check_that_goes_on_in_the_next_turn_completes_what_it_finds(clock: ManualClock) -> None:
    purgatory = clock.purgatory()
    condition, tries = checking(purgatory, "k")
    asking = purgatory.try_complete_else_watch(Gate(trying=condition), ["k"])
    assert purgatory.check_and_complete("k") == 0
    asking.opened = True
    assert not asking.done
    clock.advance(0)
    assert asking.done
    assert ROUNDS < len(tries) < 3 * ROUNDS


def test_a_hook_may_ask_for_any_number_of_checks_that_end_nothing(clock: ManualClock) -> None:
    purgatory = clock.purgatory()
    watching = [purgatory.try_complete_else_watch(Gate(), [number]) for number in range(10 * ROUNDS)]

    def check_all() -> None:
        for number in range(10 * ROUNDS):
            purgatory.check_and_complete(number)

    purgatory.try_complete_else_watch(Gate(opened=True, completing=check_all), ["a"])
    assert {len(gate.ran) for gate in watching} == {2}


def test_rounds_in_which_something_ends_do_not_count(clock: ManualClock) -> None:
    purgatory = clock.purgatory()
    left = [purgatory.try_complete_else_watch(Gate(), ["left"]) for _ in range(3 * ROUNDS)]

    def end_one() -> None:
        if left:
            left.pop().force_complete()
            purgatory.check_and_complete("k")

    purgatory.try_complete_else_watch(Gate(trying=end_one), ["k"])
    purgatory.check_and_complete("k")
    assert left == []
