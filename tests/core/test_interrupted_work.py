"""What the core does where a step of its own is interrupted, or comes twice. Each test replaces one part."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextvars import Context
from types import FrameType
from typing import Any, TypeVarTuple

import pytest

from purgatory import COMPILED, OperationState, Purgatory, PurgatoryFull, Timer
from purgatory._core.engine.action_queue import ActionQueue, CheckOwner
from purgatory._core.engine.failures import FailureReporter
from purgatory._core.engine.slices import Closing
from purgatory._core.operation import NO_LIMIT, Owner, settle, wake
from purgatory._core.waiting import wake_when_done
from purgatory._core.watch_list import CHUNK_LENGTH
from purgatory._core.watchers import Watchers
from purgatory.testing import ManualClock
from tests.operations import Gate, raising

Ts = TypeVarTuple("Ts")

white_box = pytest.mark.skipif(COMPILED, reason="a compiled class takes no other object in place of its own")


class Key:
    """A key whose hash a test decides."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.hashing: Callable[[], object] = bool
        self.number = hash(name)

    def __hash__(self) -> int:
        self.hashing()
        return self.number


class Clock(ManualClock):
    """A clock that calls `cancelling` where a timer is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelling: Callable[[], object] = bool

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        return Handle(self, handle)


class Handle(asyncio.TimerHandle):
    def __init__(self, clock: Clock, handle: asyncio.TimerHandle) -> None:
        super().__init__(handle.when(), bool, (), clock._as_loop)
        self._clock = clock
        self._handle = handle

    def cancel(self) -> None:
        self._clock.cancelling()
        self._handle.cancel()


class Waiter:
    """A waiter that raises when it is woken."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def done(self) -> bool:
        return False

    def set_result(self, _: None) -> None:
        raise self._error


def test_a_queue_with_nothing_left_to_do_does_nothing() -> None:
    queue = ActionQueue(None)
    queue.resume()
    assert not queue.waiting


def test_a_queue_whose_loop_is_closed_keeps_what_is_left_to_do() -> None:
    loop = asyncio.new_event_loop()
    queue = ActionQueue(loop)
    queue.ask(CheckOwner(), "key", NO_LIMIT)
    loop.close()
    queue.abort()
    assert queue.waiting


def test_a_queue_whose_loop_is_gone_keeps_what_is_left_to_do() -> None:
    queue = ActionQueue(None)
    queue.ask(CheckOwner(), "key", NO_LIMIT)
    queue.abort()
    assert queue.waiting


def test_an_operation_without_a_timeout_that_its_own_key_withdraws_is_not_parked() -> None:
    purgatory = ManualClock().purgatory()
    gate, key = Gate(None), Key("a")
    # The key is hashed once before the engine changes anything, and once when it is watched.
    hashed: list[Key] = []

    def withdraw() -> None:
        hashed.append(key)
        if len(hashed) == 2:
            gate.cancel()

    key.hashing = withdraw
    purgatory.try_complete_else_watch(gate, [key])
    assert gate.state is OperationState.CANCELLED
    figures = purgatory.statistics()
    assert (figures.pending, figures.keys, figures.watched, figures.cancelled) == (0, 0, 0, 1)


def test_an_operation_offered_by_a_key_in_the_middle_of_parking_fails_where_there_is_no_room_for_it() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory(max_pending=1)
    key, inner = Key("a"), Gate(60)
    hashed = []

    def offer() -> None:
        hashed.append(key)
        if len(hashed) == 2:
            purgatory.try_complete_else_watch(inner, ["b"])
            assert inner.state is OperationState.NEW

    key.hashing = offer
    outer = purgatory.try_complete_else_watch(Gate(60), [key])
    assert outer.state is OperationState.PENDING
    assert inner.state is OperationState.FAILED
    assert isinstance(inner.exception(), PurgatoryFull)
    assert purgatory.statistics().pending == 1


def test_a_check_passes_over_the_dead_entry_of_a_key_that_is_good_again() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    for number in range(50):
        purgatory.try_complete_else_watch(Gate(60), [number])
    key = Key("a")
    gate = purgatory.try_complete_else_watch(Gate(60), [key])
    key.hashing = raising(ArithmeticError("bad"))
    gate.force_complete()
    key.hashing = bool
    assert purgatory.check_and_complete(key) == 0
    assert gate.ran == ["try_complete", "on_complete"]
    assert purgatory.statistics().keys == len(purgatory.watched_keys(100)) == 50
    with pytest.raises(ExceptionGroup):
        clock.advance(0)


def test_the_keys_beside_a_dead_entry_are_counted_and_listed_from_both_ends() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    keys = [Key(str(number)) for number in range(40)]
    gates = [purgatory.try_complete_else_watch(Gate(60), [key]) for key in keys]
    shared = purgatory.try_complete_else_watch(Gate(60), [keys[1]])
    for number in (0, 1, 20, 39):
        keys[number].hashing = raising(ArithmeticError("bad"))
        gates[number].force_complete()
    # Somebody else waits on the second key.
    assert purgatory.statistics().keys == 37
    assert purgatory.watched_keys(100) == [each for n, each in enumerate(keys) if n not in (0, 20, 39)]
    assert purgatory.watched_keys(5) == [keys[1], keys[2], keys[3], keys[38], keys[37]]
    assert purgatory.watched_keys(0) == []
    shared.cancel()
    assert purgatory.statistics().keys == 36
    with pytest.raises(ExceptionGroup):
        clock.advance(0)


@pytest.mark.skipif(COMPILED, reason="no other thread runs between two instructions of compiled code")
def test_a_thread_may_ask_for_the_statistics_while_there_is_a_dead_entry() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    for number in range(50):
        purgatory.try_complete_else_watch(Gate(60), [number])
    key = Key("a")
    gate = purgatory.try_complete_else_watch(Gate(60), [key])
    key.hashing = raising(ArithmeticError("bad"))
    gate.force_complete()
    parked = 0

    def park(frame: FrameType, event: str, argument: object) -> Any:
        """What the loop's thread does where it takes the place of the other one: before each instruction."""
        nonlocal parked
        frame.f_trace_opcodes = True
        purgatory.try_complete_else_watch(Gate(60), [f"parked {parked}"])
        parked += 1
        return park

    tracer = sys.gettrace()
    sys.settrace(park)
    try:
        keys = purgatory.statistics().keys
    finally:
        sys.settrace(tracer)
    assert 50 <= keys < parked
    with pytest.raises(ExceptionGroup):
        clock.advance(0)


def test_a_new_timeout_holds_where_only_the_old_timer_cannot_be_cancelled() -> None:
    clock = Clock()
    purgatory = clock.purgatory()
    gate = purgatory.try_complete_else_watch(Gate(1), ["a"])
    clock.cancelling = raising(ArithmeticError("not now"))
    with pytest.raises(ArithmeticError):
        gate.reschedule(None)
    assert (gate.timeout, gate.deadline, len(purgatory.timer)) == (None, None, 0)


def test_what_is_ended_in_the_middle_of_rescheduling_is_settled_right_after_it() -> None:
    clock = Clock()
    purgatory = clock.purgatory()
    gate = purgatory.try_complete_else_watch(Gate(1), ["a"])
    other = purgatory.try_complete_else_watch(Gate(None), ["b"])
    clock.cancelling = other.force_complete
    gate.reschedule(0.5)
    assert other.ran == ["try_complete", "on_complete"]
    assert gate.state is OperationState.PENDING


class Loop:
    """The part of a loop that reports need."""

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self.handled: list[dict[str, Any]] = []

    def call_soon(self, *_: object) -> None:
        raise self._error

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.handled.append(context)


@white_box
def test_a_report_on_a_closed_loop_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    loop: Any = Loop(RuntimeError("Event loop is closed"))
    reporter = FailureReporter("closed")
    reporter.open_on(loop)
    reporter.report("it failed", ValueError("why"))
    assert [record.getMessage() for record in caplog.records] == ["purgatory 'closed': it failed"]


@white_box
def test_a_full_stack_is_not_taken_for_a_closed_loop() -> None:
    loop: Any = Loop(RecursionError())
    reporter = FailureReporter("full")
    reporter.open_on(loop)
    with pytest.raises(RecursionError):
        reporter.report("it failed", ValueError("why"))


def test_closing_goes_past_an_operation_that_cannot_be_ended() -> None:
    purgatory = ManualClock().purgatory()
    gate = Gate()
    gate._owner = Owner()
    closing = Closing(purgatory._engine, OperationState.EXPIRED)
    closing._end(gate)
    assert not gate.done
    with pytest.raises(NotImplementedError):
        closing.step(1.0)


async def test_closing_again_ends_what_the_first_time_has_left() -> None:
    purgatory = Purgatory()
    purgatory.start()
    await purgatory.aclose()
    purgatory._engine.accounting.pending = 1
    await purgatory.aclose()
    assert purgatory.operations() == []


def test_an_operation_of_no_purgatory_fails_with_the_error_it_is_given() -> None:
    gate, error = Gate(), ValueError("why")
    assert gate.fail(error)
    assert gate.exception() is error
    assert gate.ran == []


def test_an_operation_of_no_purgatory_raises_what_its_waiter_raises() -> None:
    gate = Gate()
    wake_when_done(gate, Waiter(ArithmeticError("asleep")))
    with pytest.raises(ArithmeticError):
        gate.force_complete()
    assert gate.done


def test_a_failure_that_there_was_no_memory_for_is_a_memory_error() -> None:
    gate = Gate()
    gate._state = OperationState.FAILED
    settle(gate)
    assert isinstance(gate.exception(), MemoryError)


def test_a_waiter_without_room_for_the_call_is_woken_another_time() -> None:
    gate = Gate()
    waiter = Waiter(MemoryError())
    wake_when_done(gate, waiter)
    with pytest.raises(MemoryError):
        wake(gate, again=False)
    [(same, error)] = wake(gate, again=True) or []
    assert same is waiter
    assert isinstance(error, MemoryError)


@white_box
def test_the_reaper_is_woken_in_the_next_turn_where_waking_it_has_raised() -> None:
    clock = ManualClock()
    timer = Timer()
    timer.start(clock._as_loop)
    woken: list[str] = []

    class Alarm:
        def done(self) -> bool:
            woken.append("asked")
            if len(woken) == 1:
                raise ArithmeticError("not now")
            return False

        def set_result(self, _: None) -> None:
            woken.append("rung")

    timer._alarm = Alarm()  # type: ignore[assignment]  # a future that raises once
    with pytest.raises(ArithmeticError):
        timer._ring()
    clock.advance(0)
    assert woken == ["asked", "asked", "rung"]


def watched(watchers: Watchers, *keys: object) -> Gate:
    """An operation that is parked on `keys`."""
    gate = Gate()
    watchers.watch(gate, keys)
    gate._parked = watchers.watched
    gate._state = OperationState.PENDING
    return gate


def leave(watchers: Watchers, gate: Gate) -> BaseException | None:
    gate._state = OperationState.COMPLETED
    problem = watchers.unwatch(gate)
    gate._parked = 0
    return problem


def test_a_list_whose_key_could_not_be_removed_is_used_again_when_the_key_is_good() -> None:
    watchers, key = Watchers(), Key("a")
    first, second = (watched(watchers, key) for _ in range(2))
    assert leave(watchers, first) is None
    key.hashing = raising(ArithmeticError("bad"))
    assert isinstance(leave(watchers, second), ArithmeticError)
    key.hashing = bool
    assert watchers.watched_keys() == []
    third = watched(watchers, key)
    assert watchers.watching(key) == [third]


def test_a_key_whose_hash_changes_while_it_becomes_shared_takes_nobody_along() -> None:
    watchers, key = Watchers(), Key("a")
    first = watched(watchers, key)
    again = Key("b")
    again.number = key.number
    again.__class__ = type("Same", (Key,), {"__eq__": lambda self, other: True, "__hash__": Key.__hash__})
    hashed: list[int] = []

    def change() -> None:
        hashed.append(0)
        if len(hashed) == 2:
            again.number += 1

    again.hashing = change
    second = watched(watchers, again)
    assert watchers.watching(key) == [first]
    assert watchers.watching(again) == [second]


def test_a_repair_keeps_what_waits_on_keys_that_raise_and_the_keys_are_still_listed() -> None:
    watchers = Watchers()
    bad, worse = Key("a"), Key("b")
    kept, left = watched(watchers, bad), watched(watchers, worse)
    bad.hashing = worse.hashing = raising(ArithmeticError("bad"))
    leave(watchers, left)
    watchers.repair()
    assert watchers.operations() == [kept]
    assert watchers.watched_keys() == [bad]


def test_a_repair_without_memory_changes_nothing() -> None:
    watchers = Watchers()
    short, bad = Key("a"), Key("b")
    kept, left = watched(watchers, short), watched(watchers, bad)
    bad.hashing = raising(ArithmeticError("bad"))
    short.hashing = raising(MemoryError())
    leave(watchers, left)
    watchers.repair()
    short.hashing = bool
    assert watchers.watching(short) == [kept]


@pytest.mark.parametrize("chunk", [1, 2])
def test_a_repair_takes_chunks_out_of_a_list_whose_operations_could_not_be_removed(chunk: int) -> None:
    watchers, bad = Watchers(), Key("bad")
    gates = [watched(watchers, "key") for _ in range(3 * CHUNK_LENGTH)]
    other = watched(watchers, bad)
    gone = gates[chunk * CHUNK_LENGTH : (chunk + 1) * CHUNK_LENGTH]
    for gate in gone:
        gate._parked = 0
        gate._state = OperationState.COMPLETED
    bad.hashing = raising(ArithmeticError("bad"))
    leave(watchers, other)
    watchers.repair()
    watchers.watched -= len(gone)
    watchers._check()
    assert watchers.watching("key") == [gate for gate in gates if gate not in gone]
