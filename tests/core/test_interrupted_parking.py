"""User code that runs in the middle of parking: the methods of a key, and finalizers."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from purgatory import DelayedOperation, OperationState, Purgatory, PurgatoryFull
from purgatory.observer import Timing
from purgatory.testing import ManualClock
from tests.core.finalized import Finalized
from tests.core.invariants import check_watchers, check_wheel
from tests.core.keys import Key
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, Stop, raising

pytestmark = pytest.mark.usefixtures("little_to_collect")

COMPLETED, EXPIRED, CANCELLED = OperationState.COMPLETED, OperationState.EXPIRED, OperationState.CANCELLED


class Meddling:
    """A purgatory where an operation is parked on a key that another one watches. One act comes in between.

    `newcomer` is being parked, `alone` is the only watcher of the key until then.
    """

    def __init__(self, act: str, listed: bool) -> None:
        self.clock = ManualClock()
        self.purgatory = self.clock.purgatory()
        self.act = act
        self.acted = 0
        self.asked = False
        self.key = Key("key", 7)
        self.alone = Gate(50, "alone")
        self.newcomer = Gate(60, "newcomer")
        self.third = Gate(70, "third")
        if listed:
            before = self.purgatory.try_complete_else_watch(Gate(), [self.key])
        self.purgatory.try_complete_else_watch(self.alone, [self.key])
        if listed:
            before.cancel()

    def perform(self) -> None:
        if self.acted:
            return
        self.acted = 1
        name, _, act = self.act.partition(" ")
        gates = {"alone": self.alone, "newcomer": self.newcomer, "third": self.third}
        gate = gates[name]
        if act == "is withdrawn":
            gate.cancel()
        elif act == "completes":
            gate.force_complete()
        elif act == "is rescheduled":
            gate.reschedule(5)
        elif act == "is rescheduled to now":
            gate.reschedule(0)
        elif act == "asks for another try":
            # It is refused before the offer.
            with suppress(RuntimeError):
                self.asked = gate.try_again_in(5)
        elif act == "is rescheduled and completes":
            gate.reschedule(5)
            gate.force_complete()
        elif act == "is offered":
            self.purgatory.try_complete_else_watch(gate, [Key("key", 7), "more"])
        elif act == "is offered and withdrawn":
            self.purgatory.try_complete_else_watch(gate, [Key("key", 7), "more"])
            gate.cancel()
        elif act == "is checked":
            gate.opened = True
            self.purgatory.check_and_complete(self.key)

    def park(self, keys: list[object]) -> None:
        try:
            self.purgatory.try_complete_else_watch(self.newcomer, keys)
        except RuntimeError:
            # It was ended before it was offered: the keys are hashed once before that.
            assert self.newcomer.done
            assert self.newcomer.keys == ()

    def check_the_books(self) -> None:
        # Raises where the exception handler of a loop would have been called.
        self.clock.advance(0)
        gates = [self.alone, self.newcomer, self.third]
        pending = [gate for gate in gates if gate.state is OperationState.PENDING]
        # The clock has stood still.
        assert [gate.deadline for gate in pending] == [gate.timeout for gate in pending]
        figures = self.purgatory.statistics()
        assert figures.pending == len(pending)
        assert sorted(gate.name for gate in pending) == sorted(map(name_of, self.purgatory.operations()))
        for gate in gates:
            assert gate.ran.count("on_complete") == (gate.state is COMPLETED or gate.state is EXPIRED)
            assert gate.scheduled == (gate in pending)
        keys = {key for gate in pending for key in gate.keys}
        assert figures.keys == len(keys)
        assert figures.watched == sum(len(gate.keys) for gate in pending)
        for key in keys:
            watching = [gate.name for gate in pending if key in gate.keys]
            assert sorted(map(name_of, self.purgatory.operations(key))) == sorted(watching)
        check_watchers(self.purgatory._engine.watchers)
        check_wheel(self.purgatory.timer.wheel)
        ended = {gate.name: gate.state for gate in gates if gate.done}
        for gate in gates:
            gate.opened = True
        if self.asked:
            self.clock.advance(6)
            (tried,) = [gate for gate in pending if gate.done]
            assert self.act.startswith(tried.name)
            pending.remove(tried)
        assert self.purgatory.check_and_complete(self.key) == len(pending)
        self.clock.advance(100)
        for gate in gates:
            assert gate.ran.count("on_complete") <= 1
            assert gate.name not in ended or gate.state is ended[gate.name]
        assert nothing_is_left(self.purgatory)


def name_of(operation: DelayedOperation[Any]) -> str:
    assert isinstance(operation, Gate)
    return operation.name


async def test_an_operation_whose_key_closes_the_purgatory_while_it_is_parked_expires() -> None:
    purgatory = Purgatory()
    purgatory._open_on(asyncio.get_running_loop())
    other = purgatory.try_complete_else_watch(Gate(), ["other"])
    key, closing = Key("key", 7), purgatory.aclose()

    # An eager task, too, runs the call until its first await at once.
    def close() -> None:
        with suppress(StopIteration):
            closing.send(None)

    key.hashing = after(1, close)
    gate = purgatory.try_complete_else_watch(Gate(60), [key])
    assert gate.expired
    assert other.expired
    assert nothing_is_left(purgatory)


async def test_an_operation_that_a_key_offers_in_the_middle_of_parking_fails_when_its_own_key_interrupts(
    purgatory: Purgatory,
) -> None:
    key, own, inner = Key("key", 7), Key("own", 8), Gate(60)
    # A key is hashed once before anything is written.
    key.hashing = after(1, lambda: purgatory.try_complete_else_watch(inner, [own]))
    own.hashing = after(1, raising(Stop()))
    outer = Gate(60)
    with pytest.raises(Stop):
        purgatory.try_complete_else_watch(outer, [key])
    assert outer.state is OperationState.PENDING
    assert purgatory.operations() == [outer]
    with pytest.raises(Stop):
        await inner


def test_an_operation_that_a_key_offers_in_the_middle_of_parking_fails_where_there_is_no_room() -> None:
    purgatory = ManualClock().purgatory(max_pending=1)
    key, inner = Key("key", 7), Gate(60)

    def offer() -> None:
        purgatory.try_complete_else_watch(inner, ["other"])
        assert inner.state is OperationState.NEW

    # The key is hashed once before anything is written.
    key.hashing = after(1, offer)
    outer = purgatory.try_complete_else_watch(Gate(60), [key])
    assert outer.state is OperationState.PENDING
    assert inner.state is OperationState.FAILED
    assert isinstance(inner.exception(), PurgatoryFull)
    assert purgatory.statistics().pending == 1


def test_an_operation_that_the_truth_value_of_its_try_completes_is_not_parked(held: Purgatory) -> None:
    class Falsy:
        def __bool__(self) -> bool:
            gate.force_complete()
            return False

    class Odd(Gate):
        def try_complete(self) -> Any:
            return Falsy()

    gate = Odd(60)
    held.try_complete_else_watch(gate, ["a"])
    assert gate.state is COMPLETED
    assert nothing_is_left(held)


ACTS = [
    "newcomer is withdrawn",
    "newcomer completes",
    "newcomer is rescheduled to now",
    "newcomer is rescheduled",
    "newcomer asks for another try",
    "alone is withdrawn",
    "alone completes",
    "alone is rescheduled to now",
    "alone is rescheduled",
    "alone is rescheduled and completes",
    "alone asks for another try",
    "alone is checked",
    "third is offered",
    "third is offered and withdrawn",
]


def after(calls: int, act: Callable[[], object]) -> Callable[[], None]:
    """Return a function that calls `act` once, at its call with that number, from 0."""
    numbers: Iterator[int] = iter(range(calls + 1))

    def count() -> None:
        if next(numbers, -1) == calls:
            act()

    return count


@pytest.mark.parametrize("listed", [False, True], ids=["alone", "listed"])
@pytest.mark.parametrize("method", ["hashing", "comparing"])
@pytest.mark.parametrize("act", ACTS)
def test_what_a_method_of_a_key_does_in_the_middle_of_parking_keeps_the_books_right(
    act: str, method: str, listed: bool
) -> None:
    acted = 0
    for calls in range(6):
        meddling = Meddling(act, listed)
        equal = Key("key", 7)
        setattr(equal, method, after(calls, meddling.perform))
        meddling.park(["first", equal, "last"] if calls % 2 else [equal])
        setattr(equal, method, None)
        acted += meddling.acted
        meddling.check_the_books()
    assert acted


@pytest.mark.parametrize("listed", [False, True], ids=["alone", "listed"])
@pytest.mark.parametrize("act", ACTS)
def test_what_a_finalizer_does_in_the_middle_of_parking_keeps_the_books_right(act: str, listed: bool) -> None:
    threshold = gc.get_threshold()
    acted = 0
    for allocations in range(12):
        meddling = Meddling(act, listed)
        gc.collect()
        Finalized(meddling.perform)
        try:
            gc.set_threshold(gc.get_count()[0] + allocations, 10, 10)
            meddling.park(["first", Key("key", 7), "last"] if allocations % 2 else [Key("key", 7)])
        finally:
            gc.set_threshold(*threshold)
        acted += meddling.acted
        gc.collect()
        meddling.check_the_books()
    assert acted


def collect_after(allocations: int) -> None:
    gc.set_threshold(gc.get_count()[0] + allocations, 10, 10)


class Silent:
    """An observer, for which the offer of an operation makes a `Timing`."""

    def operation_finished(self, purgatory: str, operation: object, timing: Timing) -> None:
        pass

    def key_checked(self, purgatory: str, key: object, tried: int, completed: int, at: float) -> None:
        pass


# A tracer makes objects at each line, so the collector would run where it never runs.
@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("observed", [False, True], ids=["not observed", "observed"])
@pytest.mark.parametrize("call", ["offer", "watch_also", "await"])
async def test_an_operation_that_a_finalizer_ends_in_the_middle_of_a_call_has_ended_for_all(
    call: str, observed: bool
) -> None:
    threshold = gc.get_threshold()
    ended = 0
    async with Purgatory(observers=[Silent()] if observed else []) as purgatory:
        for allocations in range(12):
            # The collector runs after so many allocations from here on.
            arm = after(0, partial(collect_after, allocations))
            gate, key = Gate(60), Key("key", 7)
            if call != "offer":
                purgatory.try_complete_else_watch(gate, [key])
                gate.trying = arm
            waiter: Any = None
            gc.collect()
            Finalized(gate.force_complete)
            try:
                # It is refused where it ended before.
                with suppress(RuntimeError, StopIteration):
                    if call == "offer":
                        key.hashing = arm
                        purgatory.try_complete_else_watch(gate, (key, "other"))
                    elif call == "watch_also":
                        purgatory.watch_also(gate, ("more", "other"))
                    else:
                        arm()
                        waiting = gate.__await__()
                        waiter = next(waiting)
            finally:
                gc.set_threshold(*threshold)
            ended += gate.done
            gc.collect()
            assert gate.state is COMPLETED
            assert nothing_is_left(purgatory)
            assert waiter is None or waiter.done()
            with pytest.raises(StopIteration, match="gate"):
                next(gate.__await__())
    assert ended
