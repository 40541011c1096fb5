"""The promises of the design, by number. The tests of each module cover the details around them."""

from __future__ import annotations

import asyncio
import math
import random
import time
import traceback
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from dataclasses import replace
from functools import partial
from itertools import permutations
from types import FrameType
from typing import Any, TypeVarTuple

import pytest

from purgatory import (
    DelayedOperation,
    OperationState,
    Purgatory,
    PurgatoryClosed,
    PurgatoryFull,
    PurgatoryStatistics,
)
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.operations import Gate, Stop, a_few_turns, raising

Ts = TypeVarTuple("Ts")

NOTHING_KEPT = PurgatoryStatistics(
    pending=0,
    max_pending=None,
    watched=0,
    keys=0,
    completed=0,
    expired=0,
    cancelled=0,
    failed=0,
    refused=0,
    wakeups=0,
    slices=0,
)


# 1. Exactly once


async def checked(clock: ManualClock, purgatory: Purgatory, gate: Gate) -> None:
    gate.opened = True
    purgatory.check_and_complete("key")


async def forced(clock: ManualClock, purgatory: Purgatory, gate: Gate) -> None:
    gate.force_complete()


async def due(clock: ManualClock, purgatory: Purgatory, gate: Gate) -> None:
    clock.advance(10)


async def rescheduled_to_now(clock: ManualClock, purgatory: Purgatory, gate: Gate) -> None:
    gate.reschedule(0)


async def withdrawn(clock: ManualClock, purgatory: Purgatory, gate: Gate) -> None:
    gate.cancel()


async def withdrawn_for_key(clock: ManualClock, purgatory: Purgatory, gate: Gate) -> None:
    purgatory.cancel_for_key("other")


async def closed(clock: ManualClock, purgatory: Purgatory, gate: Gate) -> None:
    await purgatory.aclose()


async def closed_by_an_exception(clock: ManualClock, purgatory: Purgatory, gate: Gate) -> None:
    await purgatory.aclose(cancel_pending=True)


Ending = Callable[[ManualClock, Purgatory, Gate], Coroutine[Any, Any, None]]

ENDINGS: dict[Ending, OperationState] = {
    checked: OperationState.COMPLETED,
    forced: OperationState.COMPLETED,
    due: OperationState.EXPIRED,
    rescheduled_to_now: OperationState.EXPIRED,
    withdrawn: OperationState.CANCELLED,
    withdrawn_for_key: OperationState.CANCELLED,
    closed: OperationState.EXPIRED,
    closed_by_an_exception: OperationState.CANCELLED,
}

HOOKS_RUN = {
    OperationState.COMPLETED: ["on_complete"],
    OperationState.EXPIRED: ["on_complete", "on_expiration"],
    OperationState.CANCELLED: [],
}


def hooks_run(gate: Gate) -> list[str]:
    return [hook for hook in gate.ran if hook != "try_complete"]


async def test_promise_01_exactly_once_in_every_order_of_endings() -> None:
    for order in permutations(ENDINGS, 3):
        clock = ManualClock()
        purgatory = clock.purgatory()
        gate = purgatory.try_complete_else_watch(Gate(1.0), ["key", "other"])
        for ending in order:
            await ending(clock, purgatory, gate)
        assert gate.state is ENDINGS[order[0]], order
        assert hooks_run(gate) == HOOKS_RUN[gate.state], order
        figures = purgatory.statistics()
        assert figures.completed + figures.expired + figures.cancelled == 1, order
        assert (figures.pending, figures.watched, figures.keys) == (0, 0, 0), order


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.__name__)
async def test_promise_01_exactly_once_when_hooks_end_their_operation_again(
    ending: Ending,
) -> None:
    def end_it_again() -> None:
        assert not gate.force_complete()
        assert not gate.cancel()
        assert not gate.reschedule(0)
        gate.run()
        assert purgatory.check_and_complete("key") == 0
        assert purgatory.cancel_for_key("key") == []

    clock = ManualClock()
    purgatory = clock.purgatory()
    gate = Gate(1.0, completing=end_it_again, expiring=end_it_again)
    purgatory.try_complete_else_watch(gate, ["key", "other"])
    await ending(clock, purgatory, gate)
    assert gate.state is ENDINGS[ending]
    assert hooks_run(gate) == HOOKS_RUN[gate.state]


@pytest.mark.parametrize("keys", [["key"], ["a", "key", "b"]], ids=["one key", "three keys"])
def test_promise_01_exactly_once_when_try_complete_ends_the_operation_and_goes_on(keys: list[str]) -> None:
    def end_it_twice() -> None:
        assert gate.force_complete()
        assert not gate.force_complete()
        assert not gate.cancel()

    purgatory = ManualClock().purgatory()
    gate = Gate(trying=end_it_twice)
    assert purgatory.try_complete_else_watch(gate, keys) is gate
    assert gate.ran == ["try_complete", "on_complete"]
    assert purgatory.statistics().completed == 1


# 2. Check-then-watch is atomic


async def test_promise_02_offering_tries_once_and_watches_before_it_returns(purgatory: Purgatory) -> None:
    gate = purgatory.try_complete_else_watch(Gate(10), ["a", "b"])
    assert gate.ran == ["try_complete"]
    assert gate.state is OperationState.PENDING
    assert purgatory.operations("a") == purgatory.operations("b") == [gate]


async def test_promise_02_a_change_between_the_try_and_the_watching_is_not_missed(
    purgatory: Purgatory,
) -> None:
    class Fetch(DelayedOperation[str]):
        def try_complete(self) -> bool:
            if log:
                return self.force_complete()
            # The try itself leads to an append, after it has looked at the log.
            log.append("record")
            assert purgatory.check_and_complete("log") == 0
            return False

        def on_complete(self) -> str:
            return log[-1]

    log: list[str] = []
    fetch = purgatory.try_complete_else_watch(Fetch(None), ["log"])
    assert fetch.state is OperationState.COMPLETED
    assert fetch.result() == "record"


# 3. Done means gone: freed by reference count

Act = Callable[[Purgatory], Awaitable[object]]


async def by_a_check(purgatory: Purgatory) -> None:
    for operation in purgatory.operations():
        operation.opened = True  # type: ignore[attr-defined]
    del operation
    purgatory.check_and_complete("a")


async def by_a_sweep(purgatory: Purgatory) -> None:
    for operation in purgatory.operations():
        operation.opened = True  # type: ignore[attr-defined]
    del operation
    await purgatory.sweep("a")


async def by_force(purgatory: Purgatory) -> None:
    for operation in purgatory.operations():
        operation.force_complete()


async def by_expiry(purgatory: Purgatory) -> None:
    await asyncio.sleep(2)


async def by_rescheduling_to_now(purgatory: Purgatory) -> None:
    for operation in purgatory.operations():
        operation.reschedule(-1)


async def by_withdrawing(purgatory: Purgatory) -> None:
    for operation in purgatory.operations():
        operation.cancel()


async def by_withdrawing_the_key(purgatory: Purgatory) -> None:
    purgatory.cancel_for_key("a")


async def by_closing(purgatory: Purgatory) -> None:
    await purgatory.aclose()


async def by_closing_with_an_exception(purgatory: Purgatory) -> None:
    await purgatory.aclose(cancel_pending=True)


async def by_a_cancelled_await(purgatory: Purgatory) -> None:
    async def wait(operation: DelayedOperation[Any]) -> None:
        await operation

    tasks = [asyncio.create_task(wait(operation)) for operation in purgatory.operations()]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def by_a_completed_await(purgatory: Purgatory) -> None:
    async def wait(operation: DelayedOperation[Any]) -> None:
        await operation

    tasks = [asyncio.create_task(wait(operation)) for operation in purgatory.operations()]
    await asyncio.sleep(0)
    await by_a_check(purgatory)
    await asyncio.wait(tasks)


ACTS = [
    by_a_check,
    by_a_sweep,
    by_force,
    by_expiry,
    by_rescheduling_to_now,
    by_withdrawing,
    by_withdrawing_the_key,
    by_closing,
    by_closing_with_an_exception,
    by_a_cancelled_await,
    by_a_completed_await,
]


@pytest.mark.usefixtures("virtual_time", "collector_off")
@pytest.mark.parametrize("keys", [["a"], ["a", "b", "c"]], ids=["one key", "three keys"])
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
async def test_promise_03_done_means_gone(act: Act, keys: list[str]) -> None:
    purgatory = Purgatory()
    purgatory.start()
    offered = [weakref.ref(purgatory.try_complete_else_watch(Gate(1), keys)) for _ in range(20)]
    await act(purgatory)
    figures = purgatory.statistics()
    assert figures.completed + figures.expired + figures.cancelled == 20
    assert (figures.pending, figures.watched, figures.keys) == (0, 0, 0)
    assert [ref() for ref in offered if ref() is not None] == []
    await purgatory.aclose()


@pytest.mark.usefixtures("collector_off")
async def test_promise_03_an_operation_that_completes_at_once_is_never_kept(purgatory: Purgatory) -> None:
    completed = weakref.ref(purgatory.try_complete_else_watch(Gate(1, opened=True), ["a", "b"]))
    expired = weakref.ref(purgatory.try_complete_else_watch(Gate(0), ["a", "b"]))
    assert completed() is None
    assert expired() is None
    assert purgatory.statistics().keys == 0


@pytest.mark.usefixtures("collector_off")
@pytest.mark.parametrize("hook", ["trying", "completing", "expiring"])
async def test_promise_03_only_the_traceback_keeps_a_failed_operation(
    purgatory: Purgatory, reported: list[dict[str, Any]], hook: str
) -> None:
    error = ValueError(hook)
    gate = Gate(1)
    ref = weakref.ref(purgatory.try_complete_else_watch(gate, ["a", "b", "c"]))
    setattr(gate, hook, raising(error))
    if hook == "expiring":
        gate.reschedule(0)
    else:
        gate.opened = True
        purgatory.check_and_complete("b")
    assert gate.state is OperationState.FAILED
    figures = purgatory.statistics()
    assert (figures.pending, figures.watched, figures.keys, figures.failed) == (0, 0, 0, 1)
    await a_few_turns()
    assert len(reported) == 1
    # The traceback of an exception keeps the frames, and these keep `self`.
    clear_frames(error)
    reported.clear()
    del gate
    assert ref() is None


def clear_frames(error: BaseException) -> None:
    """Clear the frames in the traceback of `error`, and the frames that called them."""
    for innermost, _ in traceback.walk_tb(error.__traceback__):
        frame: FrameType | None = innermost
        while frame is not None:
            try:
                frame.clear()
            except RuntimeError:
                break  # The frame is still running.
            frame = frame.f_back


@pytest.mark.usefixtures("virtual_time", "collector_off")
@pytest.mark.parametrize("how", ["sweeping", "closing", "expiring"])
async def test_promise_03_a_done_operation_is_freed_while_bulk_work_pauses(how: str) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    purgatory = Purgatory(slice_seconds=0.001)
    purgatory.start()
    slow = partial(loop.jump, 0.0005)
    offered = [
        weakref.ref(purgatory.try_complete_else_watch(Gate(1, completing=slow), ["a", "b"]))
        for _ in range(100)
    ]
    work: asyncio.Task[Any] | None = None
    if how == "expiring":
        await asyncio.sleep(1)
    elif how == "closing":
        work = asyncio.create_task(purgatory.aclose())
    else:
        for operation in purgatory.operations("a"):
            operation.opened = True  # type: ignore[attr-defined]
        del operation
        work = asyncio.create_task(purgatory.sweep("a"))
    pauses = 0
    while purgatory.statistics().pending:
        await asyncio.sleep(0)
        pauses += 1
        alive = sum(ref() is not None for ref in offered)
        assert alive == purgatory.statistics().pending
    assert pauses > 6
    if work is not None:
        assert await work == (100 if how == "sweeping" else None)
    await purgatory.aclose()


@pytest.mark.usefixtures("collector_off")
async def test_promise_03_a_key_without_watchers_is_freed(purgatory: Purgatory) -> None:
    class Key:
        pass

    key = Key()
    gates = [purgatory.try_complete_else_watch(Gate(name=str(n)), [key, "other"]) for n in range(40)]
    ref = weakref.ref(key)
    for gate in gates[1:]:
        gate.force_complete()
    gates[0].cancel()
    del key, gate, gates
    assert ref() is None
    assert purgatory.statistics().keys == 0


# 4. Never early, barely late


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("tick", [0.001, 0.003, 0.25])
async def test_promise_04_never_early_and_less_than_a_tick_late(tick: float) -> None:
    loop = asyncio.get_running_loop()
    rng = random.Random(4)
    ended: dict[int, float] = {}
    waits: list[tuple[float, Gate]] = []
    async with Purgatory(tick=tick) as purgatory:
        for number in range(300):
            timeout = rng.choice([rng.uniform(0, 3 * tick), rng.uniform(0, 400 * tick), rng.uniform(0, 5)])
            gate = Gate(timeout)
            gate.expiring = lambda number=number: ended.setdefault(number, loop.time())
            waits.append((loop.time() + timeout, purgatory.try_complete_else_watch(gate, [number])))
            await asyncio.sleep(rng.uniform(0, 2 * tick))
        await asyncio.gather(*[gate for _, gate in waits])
    assert len(ended) == 300
    for number, (deadline, gate) in enumerate(waits):
        assert gate.deadline == deadline
        assert 0 <= ended[number] - deadline < tick


@pytest.mark.real_time
async def test_promise_04_never_early_on_a_real_clock(purgatory: Purgatory) -> None:
    early: list[float] = []

    def expired(deadline: float) -> None:
        if time.monotonic() < deadline:
            early.append(deadline)

    gates = []
    for step in range(100):
        timeout = 0.0003 * step
        gate = Gate(timeout, expiring=partial(expired, time.monotonic() + timeout))
        gates.append(purgatory.try_complete_else_watch(gate, ["key"]))
    await asyncio.gather(*gates)
    assert [gate.ran.count("on_expiration") for gate in gates] == [1] * 100
    assert early == []


# 5. Nothing pending, nothing running


class CountingLoop(VirtualTimeLoop):
    """Counts the timers that are armed. In these tests only the purgatory arms any."""

    def __init__(self) -> None:
        self.handles: list[asyncio.TimerHandle] = []
        self.most_at_once = 0
        super().__init__()

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        self.handles.append(handle)
        waiting = [h for h in self.handles if not h.cancelled() and h.when() > self.time()]
        self.most_at_once = max(self.most_at_once, len(waiting))
        return handle


def on_counting_loop(main: Callable[[CountingLoop], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, CountingLoop)
        runner.run(main(loop))


def test_promise_05_an_idle_purgatory_arms_nothing() -> None:
    async def main(loop: CountingLoop) -> None:
        async with Purgatory() as purgatory:
            await asyncio.sleep(0)
            purgatory.try_complete_else_watch(Gate(5, opened=True), ["a"])
            purgatory.try_complete_else_watch(Gate(0), ["a"])
            forever = purgatory.try_complete_else_watch(Gate(None), ["a"])
            purgatory.try_complete_else_watch(Gate(math.inf), ["a"])
            assert purgatory.check_and_complete("a") == 0
            await asyncio.sleep(0)
            assert not purgatory.timer.armed
            forever.force_complete()
        assert loop.handles == []
        assert purgatory.statistics().wakeups == 0

    on_counting_loop(main)


@pytest.mark.parametrize("act", [by_force, by_withdrawing, by_withdrawing_the_key, by_closing])
def test_promise_05_the_timer_is_disarmed_when_the_last_operation_ends_early(act: Act) -> None:
    async def main(loop: CountingLoop) -> None:
        async with Purgatory() as purgatory:
            for timeout in (3, 2, 1):
                purgatory.try_complete_else_watch(Gate(timeout), ["a", "b"])
            await asyncio.sleep(0)
            assert purgatory.timer.armed
            await act(purgatory)
            assert not purgatory.timer.armed
            assert all(handle.cancelled() for handle in loop.handles)
        assert purgatory.statistics().wakeups == 0

    on_counting_loop(main)


def test_promise_05_the_timer_is_disarmed_when_an_operation_that_no_longer_expires_ends() -> None:
    async def main(loop: CountingLoop) -> None:
        async with Purgatory() as purgatory:
            gate = purgatory.try_complete_else_watch(Gate(1), ["a"])
            await asyncio.sleep(0)
            gate.reschedule(None)
            gate.force_complete()
            assert purgatory.statistics().pending == 0
            assert not purgatory.timer.armed

    on_counting_loop(main)


def test_promise_05_a_busy_purgatory_arms_one_timer_and_wakes_once_per_occupied_slot() -> None:
    async def main(loop: CountingLoop) -> None:
        async with Purgatory(tick=0.001, wheel_size=64) as purgatory:
            gates = [
                purgatory.try_complete_else_watch(Gate(0.001 * (1 + n % 20)), [n % 7]) for n in range(1_000)
            ]
            await asyncio.gather(*gates)
            assert purgatory.statistics().wakeups == 20
            assert not purgatory.timer.armed
        assert loop.most_at_once == 1

    on_counting_loop(main)


def test_promise_05_parking_later_deadlines_arms_nothing_more() -> None:
    async def main(loop: CountingLoop) -> None:
        async with Purgatory() as purgatory:
            await asyncio.sleep(0)
            for timeout in range(1, 500):
                purgatory.try_complete_else_watch(Gate(timeout), ["a"])
            assert len(loop.handles) == 1
            assert purgatory.timer.armed

    on_counting_loop(main)


def test_promise_05_slots_whose_operations_were_withdrawn_cost_no_wakeup() -> None:
    async def main(loop: CountingLoop) -> None:
        async with Purgatory(tick=0.001, wheel_size=64) as purgatory:
            gates = [purgatory.try_complete_else_watch(Gate(0.001 * n), ["a"]) for n in range(1, 61)]
            await asyncio.sleep(0)
            for gate in gates[:-1]:
                gate.cancel()
            await gates[-1]
            # One was armed already, and one is for the last operation.
            assert purgatory.statistics().wakeups <= 2

    on_counting_loop(main)


def test_promise_05_heartbeats_arm_no_timer() -> None:
    async def main(loop: CountingLoop) -> None:
        async with Purgatory() as purgatory:
            session = purgatory.try_complete_else_watch(Gate(10), ["session"])
            await asyncio.sleep(0)
            armed = len(loop.handles)
            for _ in range(1_000):
                assert session.reschedule(10)
            assert len(loop.handles) == armed
            assert session.state is OperationState.PENDING

    on_counting_loop(main)


@pytest.mark.usefixtures("virtual_time")
async def test_promise_05_heartbeats_wake_about_once_for_each_timeout() -> None:
    async with Purgatory() as purgatory:
        session = purgatory.try_complete_else_watch(Gate(30), ["session"])
        for _ in range(3_600):
            await asyncio.sleep(1)
            assert session.reschedule(30)
        assert purgatory.statistics().wakeups <= 3_600 / 30 * 1.5
        began = asyncio.get_running_loop().time()
        await session
        assert 30 <= asyncio.get_running_loop().time() - began < 30.001


@pytest.mark.usefixtures("virtual_time")
async def test_promise_05_a_rescheduled_operation_that_is_withdrawn_costs_no_wakeup() -> None:
    async with Purgatory() as purgatory:
        session = purgatory.try_complete_else_watch(Gate(1), ["session"])
        session.reschedule(2)
        session.cancel()
        assert not purgatory.timer.armed
        await asyncio.sleep(3)
        assert purgatory.statistics().wakeups == 0


# 6. Order


@pytest.mark.parametrize("sweeping", [False, True], ids=["check", "sweep"])
async def test_promise_06_first_come_first_tried_per_key(purgatory: Purgatory, sweeping: bool) -> None:
    rng = random.Random(6)
    tried: list[int] = []
    gates = []
    for number in range(200):
        gate = purgatory.try_complete_else_watch(Gate(), ["a", "b"] if number % 2 else ["b", "a"])
        gate.trying = partial(tried.append, number)
        gates.append(gate)
    withdrawn = set(rng.sample(range(200), 90))
    for number in withdrawn:
        gates[number].cancel()
    left = [number for number in range(200) if number not in withdrawn]
    for key in ("a", "b"):
        tried.clear()
        assert (await purgatory.sweep(key) if sweeping else purgatory.check_and_complete(key)) == 0
        assert tried == left
        assert purgatory.operations(key) == [gates[number] for number in left]


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("wheel_size", [2, 3, 20, 64])
async def test_promise_06_expiry_by_deadline_then_by_insertion(wheel_size: int) -> None:
    rng = random.Random(wheel_size)
    loop = asyncio.get_running_loop()
    expired: list[tuple[int, int]] = []
    gates: list[Gate] = []
    async with Purgatory(tick=1.0, wheel_size=wheel_size) as purgatory:
        for number in range(400):
            deadline = int(loop.time()) + rng.choice([1, 2, 5, 20, 21, 40, 90])
            gate = Gate(deadline - loop.time(), expiring=partial(expired.append, (deadline, number)))
            gates.append(purgatory.try_complete_else_watch(gate, [number % 3]))
            if rng.random() < 0.2:
                await asyncio.sleep(rng.choice([1, 3, 7]))
        await asyncio.gather(*gates)
    assert len(expired) == 400
    assert expired == sorted(expired)


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("wheel_size", [2, 3, 20, 64])
async def test_promise_06_after_a_reschedule_by_tick(wheel_size: int) -> None:
    rng = random.Random(wheel_size)
    loop = asyncio.get_running_loop()
    expired: list[tuple[int, int]] = []
    gates: list[Gate] = []

    def note(gate: Gate, number: int) -> None:
        assert gate.deadline is not None
        expired.append((int(gate.deadline), number))
        assert loop.time() == gate.deadline

    async with Purgatory(tick=1.0, wheel_size=wheel_size) as purgatory:
        for number in range(400):
            gate = Gate(rng.choice([1, 2, 5, 20, 21, 40, 90]))
            gate.expiring = partial(note, gate, number)
            gates.append(purgatory.try_complete_else_watch(gate, [number % 3]))
            if rng.random() < 0.2:
                # Every third one is rescheduled, to an earlier or a later tick.
                rng.choice(gates[::3]).reschedule(rng.choice([1, 2, 20, 90]))
                await asyncio.sleep(rng.choice([1, 3, 7]))
        await asyncio.gather(*gates)
    assert len(expired) == 400
    assert [tick for tick, _ in expired] == sorted(tick for tick, _ in expired)
    never_rescheduled = [(tick, number) for tick, number in expired if number % 3]
    assert never_rescheduled == sorted(never_rescheduled)


# 7. One bad operation harms only itself


@pytest.mark.parametrize("error", [ValueError("bad"), StopIteration("bad"), PurgatoryFull("bad")], ids=repr)
@pytest.mark.parametrize("hook", ["trying", "completing"])
async def test_promise_07_a_bad_operation_does_not_keep_the_others_on_the_key_from_completing(
    purgatory: Purgatory, reported: list[dict[str, Any]], hook: str, error: Exception
) -> None:
    before, bad, behind = (purgatory.try_complete_else_watch(Gate(name=n), ["key"]) for n in "abc")
    setattr(bad, hook, raising(error))
    for gate in (before, bad, behind):
        gate.opened = True
    assert purgatory.check_and_complete("key") == 2
    assert bad.state is OperationState.FAILED
    assert bad.exception() is error
    assert before.result() == "a"
    assert behind.result() == "c"
    figures = purgatory.statistics()
    assert (figures.completed, figures.failed, figures.pending, figures.keys) == (2, 1, 0, 0)
    assert reported == []


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("hook", ["completing", "expiring"])
async def test_promise_07_a_bad_operation_does_not_keep_the_others_from_expiring(
    purgatory: Purgatory, reported: list[dict[str, Any]], hook: str
) -> None:
    gates = [purgatory.try_complete_else_watch(Gate(1, str(n)), [n]) for n in range(100)]
    later = purgatory.try_complete_else_watch(Gate(2), ["later"])
    for bad in gates[::3]:
        setattr(bad, hook, raising(ValueError(bad.name)))
    await later
    assert [gate.state for gate in gates[::3]] == [OperationState.FAILED] * 34
    good = [gate for number, gate in enumerate(gates) if number % 3]
    assert [gate.state for gate in good] == [OperationState.EXPIRED] * 66
    # No task awaited them, so the loop's exception handler gets each exception once.
    await a_few_turns()
    assert [str(context["exception"]) for context in reported] == [gate.name for gate in gates[::3]]


async def test_promise_07_waiters_get_the_exception_and_then_the_handler_does_not(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    error = ValueError("bad")
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(error)), ["key"])

    async def wait() -> None:
        await gate

    waits = [asyncio.create_task(wait()) for _ in range(3)]
    await asyncio.sleep(0)
    gate.force_complete()
    await asyncio.wait(waits)
    assert [wait.exception() for wait in waits] == [error] * 3
    assert reported == []


async def test_promise_07_a_base_exception_propagates_after_the_accounting_is_done(
    purgatory: Purgatory,
) -> None:
    stop = Stop()
    gates = [purgatory.try_complete_else_watch(Gate(name=n), ["key", "other"]) for n in "abc"]
    gates[1].trying = raising(stop)
    for gate in gates:
        gate.opened = True
    with pytest.raises(Stop) as caught:
        purgatory.check_and_complete("key")
    assert caught.value is stop
    assert [gate.state.name for gate in gates] == ["COMPLETED", "FAILED", "PENDING"]
    figures = purgatory.statistics()
    assert (figures.completed, figures.failed, figures.pending) == (1, 1, 1)
    assert (figures.watched, figures.keys) == (2, 2)
    # The operations behind it are checked in the loop's next turn.
    assert await gates[2] == "c"


# 8. Re-entrancy


@pytest.mark.usefixtures("untraced")
async def test_promise_07_a_hook_that_reads_a_cancelled_future_never_cancels_who_signals(
    purgatory: Purgatory,
) -> None:
    job: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(purgatory.wait_until(lambda: job.done() and job.result(), ["job"]))
    other = purgatory.try_complete_else_watch(Gate(), ["job"])
    await a_few_turns()
    job.cancel()
    other.opened = True
    assert purgatory.check_and_complete("job") == 1
    with pytest.raises(RuntimeError, match="something that it reads was cancelled") as raised:
        await waiting
    assert isinstance(raised.value.__cause__, asyncio.CancelledError)
    assert other.done


async def test_promise_07_an_error_that_fail_was_given_is_a_result(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    seen, unseen = (purgatory.try_complete_else_watch(Gate(), ["a"]) for _ in range(2))
    error = LookupError("gone")
    for gate in (seen, unseen):
        assert gate.fail(error)
    del gate
    await a_few_turns()
    assert reported == []
    with pytest.raises(LookupError):
        await seen
    del seen, unseen
    await a_few_turns()
    assert [context["exception"] for context in reported] == [error]


@pytest.mark.parametrize("purgatories", [1, 2, 1_000])
def test_promise_08_a_chain_of_100_000_operations_needs_no_stack(purgatories: int) -> None:
    length = 100_000
    clock = ManualClock()
    held = [clock.purgatory(str(number)) for number in range(purgatories)]
    inside: list[int] = []

    def light(number: int) -> None:
        if number < length:
            gates[number].opened = True
            inside.append(held[number % purgatories].check_and_complete(number))

    gates = [
        held[number % purgatories].try_complete_else_watch(
            Gate(completing=partial(light, number + 1)), [number]
        )
        for number in range(length)
    ]
    gates[0].opened = True
    assert held[0].check_and_complete(0) == length
    assert set(inside) == {0}
    assert sum(purgatory.statistics().completed for purgatory in held) == length


@pytest.mark.usefixtures("untraced")
def test_promise_08_a_chain_that_starts_with_an_expiry_needs_no_stack() -> None:
    length = 100_000
    clock = ManualClock()
    purgatory = clock.purgatory()

    def light(number: int) -> None:
        if number < length:
            gates[number].opened = True
            assert purgatory.check_and_complete(number) == 0

    gates = [
        purgatory.try_complete_else_watch(
            Gate(None if number else 1, completing=partial(light, number + 1)), [number]
        )
        for number in range(length)
    ]
    clock.advance(1)
    figures = purgatory.statistics()
    assert (figures.expired, figures.completed, figures.pending) == (1, length - 1, 0)


async def test_promise_08_an_operation_parked_by_a_hook_is_not_visited_in_that_pass(
    purgatory: Purgatory,
) -> None:
    children: list[Gate] = []

    def park_another() -> None:
        children.append(purgatory.try_complete_else_watch(Gate(opened=False), ["key"]))
        children[-1].opened = True

    for _ in range(40):
        gate = purgatory.try_complete_else_watch(Gate(), ["key"])
        gate.trying = park_another
        gate.opened = True
    assert purgatory.check_and_complete("key") == 40
    assert [child.ran for child in children] == [["try_complete"]] * 40
    assert purgatory.operations("key") == children
    assert purgatory.check_and_complete("key") == 40


async def test_promise_08_a_check_of_another_purgatory_made_inside_a_hook_is_queued_too(
    purgatory: Purgatory,
) -> None:
    order: list[str] = []
    async with Purgatory("second") as second:
        waiting = second.try_complete_else_watch(Gate(completing=lambda: order.append("inner")), ["there"])
        waiting.opened = True

        def tell() -> None:
            assert second.check_and_complete("there") == 0
            order.append("outer")

        purgatory.try_complete_else_watch(Gate(completing=tell, opened=True), ["here"])
        assert order == ["outer", "inner"]
        assert second.statistics().completed == 1


# 9. Bounded stalls


async def longest_stall(loop: VirtualTimeLoop, until: Callable[[], bool]) -> float:
    """Return the longest time between two turns of the loop, in virtual seconds. Only hooks take time."""
    longest = 0.0
    while not until():
        before = loop.time()
        await asyncio.sleep(0)
        longest = max(longest, loop.time() - before)
    return longest


SLICE = 0.005


@pytest.mark.usefixtures("virtual_time", "untraced")
@pytest.mark.parametrize("how", ["expiring", "sweeping", "closing", "withdrawing"])
@pytest.mark.parametrize(("many", "hook_seconds"), [(20_000, 0.000_01), (100, 0.002)])
async def test_promise_09_bulk_work_holds_the_loop_for_one_slice_and_one_hook_at_a_time(
    how: str, many: int, hook_seconds: float
) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    slow = partial(loop.jump, hook_seconds)

    class Slow:
        """An observer, because withdrawing runs no hook."""

        def operation_finished(self, *_: object) -> None:
            slow()

        def key_checked(self, *_: object) -> None: ...

    purgatory = Purgatory(slice_seconds=SLICE, observers=[Slow()] if how == "withdrawing" else [])
    purgatory.start()
    for number in range(many):
        gate = Gate(60, completing=None if how == "withdrawing" else slow)
        purgatory.try_complete_else_watch(gate, ["all", number]).opened = how == "sweeping"
    work: asyncio.Task[Any]
    if how == "expiring":
        work = asyncio.create_task(asyncio.sleep(60))
        await work
    elif how == "sweeping":
        work = asyncio.create_task(purgatory.sweep("all"))
    else:
        work = asyncio.create_task(purgatory.aclose(cancel_pending=how == "withdrawing"))
    began = loop.time()
    stall = await longest_stall(loop, lambda: not purgatory.statistics().pending)
    assert stall < 1.1 * SLICE + hook_seconds
    assert loop.time() - began > 0.9 * many * hook_seconds
    assert await work == (many if how == "sweeping" else None)
    await purgatory.aclose()


# 10. Cancellation


async def test_promise_08_checks_that_end_nothing_do_not_hold_the_loop(
    purgatory: Purgatory, caplog: pytest.LogCaptureFixture
) -> None:
    def check() -> bool:
        purgatory.check_and_complete("k")
        return stopped

    stopped = False
    waiting = asyncio.create_task(purgatory.wait_until(check, ["k"], timeout=60))
    await a_few_turns()
    assert not waiting.done()
    stopped = True
    assert await waiting
    assert "asks for a check of 'k' whenever it is tried, and nothing ends" in caplog.text


@pytest.mark.parametrize("first", ["cancellation", "completion"])
async def test_promise_10_no_permit_is_lost_to_a_cancelled_task(purgatory: Purgatory, first: str) -> None:
    free: list[str] = []

    class Request(Gate):
        def try_complete(self) -> bool:
            return bool(free) and self.force_complete()

        def on_complete(self) -> str:
            return free.pop()

        def on_unclaimed(self) -> None:
            free.append(self.result())
            purgatory.check_and_complete("free", limit=1)

    ada, bob = (
        asyncio.ensure_future(purgatory.try_complete_else_watch(Request(), ["free"])) for _ in range(2)
    )
    await a_few_turns()
    if first == "cancellation":
        ada.cancel()
    free.append("permit")
    assert purgatory.check_and_complete("free", limit=1) == 1
    ada.cancel()
    assert await bob == "permit"
    assert ada.cancelled()


async def test_promise_10_cancelling_the_last_waiting_task_withdraws_the_operation(
    purgatory: Purgatory,
) -> None:
    gate = purgatory.try_complete_else_watch(Gate(60), ["a", "b"])

    async def wait() -> str:
        return await gate

    first, second = asyncio.create_task(wait()), asyncio.create_task(wait())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    assert not gate.done
    second.cancel()
    await asyncio.wait([second])
    assert second.cancelled()
    assert gate.state is OperationState.CANCELLED
    assert gate.ran == ["try_complete"]
    assert purgatory.statistics().watched == 0


# 11. Close leaves no one hanging


async def test_promise_11_closing_stops_intake_and_expires_what_is_pending() -> None:
    refused: list[Gate] = []

    def offer_another() -> None:
        refused.append(Gate(opened=True))
        with pytest.raises(PurgatoryClosed):
            purgatory.try_complete_else_watch(refused[-1], ["a"])

    purgatory = Purgatory()
    purgatory.start()
    gates = [
        purgatory.try_complete_else_watch(Gate(t, "x", completing=offer_another), ["a"]) for t in (60, None)
    ]

    async def wait(gate: Gate) -> str:
        return await gate

    waits = [asyncio.create_task(wait(gate)) for gate in gates]
    await asyncio.sleep(0)
    await purgatory.aclose()
    assert await asyncio.gather(*waits) == ["x", "x"]
    for gate in gates:
        assert gate.state is OperationState.EXPIRED
        assert gate.ran == ["try_complete", "on_complete", "on_expiration"]
    assert [gate.state for gate in refused] == [OperationState.NEW] * 2
    await purgatory.aclose()
    assert purgatory.statistics().expired == 2


@pytest.mark.usefixtures("virtual_time")
async def test_promise_11_an_operation_tells_closing_from_its_timeout() -> None:
    async with Purgatory() as purgatory:
        short, long = (purgatory.try_complete_else_watch(Gate(seconds), ["a"]) for seconds in (1, 60))
        assert await short == "gate"
    assert (short.expired, short.timed_out) == (True, True)
    assert (long.expired, long.timed_out) == (True, False)


async def test_promise_11_an_exception_leaves_the_block_as_it_is_and_withdraws_what_is_pending() -> None:
    error = ValueError("mine")
    gate = Gate(60)

    async def block() -> None:
        async with Purgatory() as purgatory:
            purgatory.try_complete_else_watch(gate, ["a"])
            raise error

    with pytest.raises(ValueError, match="mine") as caught:
        await block()
    assert caught.value is error
    assert gate.state is OperationState.CANCELLED
    assert gate.ran == ["try_complete"]


async def test_promise_11_a_lease_that_closing_ends_is_not_handed_over_and_nobody_hangs() -> None:
    def hand_over() -> None:
        following.opened = True
        purgatory.check_and_complete("free")

    def take() -> None:
        with pytest.raises(PurgatoryClosed):
            purgatory.try_complete_else_watch(Gate(60), ["lease"])

    async with Purgatory() as purgatory:
        held = purgatory.try_complete_else_watch(Gate(60, completing=hand_over), ["lease"])
        following = purgatory.try_complete_else_watch(Gate(60, "next", completing=take), ["free"])
        behind = purgatory.try_complete_else_watch(Gate(60, "last"), ["free"])
    assert (await held, await following, await behind) == ("gate", "next", "last")
    assert (held.expired, following.expired, behind.expired) == (True, False, True)


# 12. Back-pressure


@pytest.mark.usefixtures("collector_off")
async def test_promise_12_a_full_purgatory_refuses_what_would_wait_and_keeps_nothing_of_it() -> None:
    async with Purgatory(max_pending=2) as purgatory:
        first = purgatory.try_complete_else_watch(Gate(60), ["a"])
        purgatory.try_complete_else_watch(Gate(), ["b"])
        full = purgatory.statistics()
        refused = Gate(60)
        with pytest.raises(PurgatoryFull):
            purgatory.try_complete_else_watch(refused, ["a", "c"])
        assert purgatory.statistics() == replace(full, refused=1)
        assert refused.state is OperationState.NEW
        assert not refused.keys
        assert not refused.scheduled
        # An operation that need not wait is accepted.
        assert purgatory.try_complete_else_watch(Gate(opened=True), ["a"]).result() == "gate"
        assert purgatory.try_complete_else_watch(Gate(0), ["a"]).expired
        # The refused operation can be offered again.
        first.force_complete()
        assert purgatory.try_complete_else_watch(refused, ["a", "c"]).state is OperationState.PENDING
        assert refused.keys == ("a", "c")
        lost = Gate(60)
        ref = weakref.ref(lost)
        with pytest.raises(PurgatoryFull):
            purgatory.try_complete_else_watch(lost, ["a"])
        del lost
        assert ref() is None


# 13. Bad input is refused whole

BAD_KEYS: dict[str, tuple[Any, type[Exception]]] = {
    "no keys": ([], ValueError),
    "no keys in a tuple": ((), ValueError),
    "no keys in a generator": (iter(()), ValueError),
    "a str": ("key", TypeError),
    "an empty str": ("", TypeError),
    "bytes": (b"key", TypeError),
    "None": (None, TypeError),
    "a number": (5, TypeError),
    "an unhashable key": ([[]], TypeError),
    "an unhashable key in a tuple": (([],), TypeError),
    "an unhashable key among others": (["a", {}, "b"], TypeError),
    "a key that holds something unhashable": (["a", ("b", [])], TypeError),
}


@pytest.mark.usefixtures("collector_off")
@pytest.mark.parametrize(("keys", "error"), BAD_KEYS.values(), ids=BAD_KEYS.keys())
async def test_promise_13_bad_keys_are_refused_whole(
    purgatory: Purgatory, keys: Any, error: type[Exception]
) -> None:
    gate = Gate(60, opened=True)
    with pytest.raises(error):
        purgatory.try_complete_else_watch(gate, keys)
    assert gate.state is OperationState.NEW
    assert gate.ran == []
    assert gate.keys == ()
    assert purgatory.statistics() == NOTHING_KEPT
    assert purgatory.operations() == []
    ref = weakref.ref(gate)
    del gate
    assert ref() is None


async def test_promise_13_an_operation_offered_twice_is_refused_and_stays_where_it_is(
    purgatory: Purgatory,
) -> None:
    gate = purgatory.try_complete_else_watch(Gate(60), ["a"])
    before = purgatory.statistics()
    async with Purgatory("second") as second:
        for other in (purgatory, second):
            with pytest.raises(RuntimeError, match="offered before"):
                other.try_complete_else_watch(gate, ["b"])
        assert second.statistics() == NOTHING_KEPT
    assert gate.ran == ["try_complete"]
    assert gate.keys == ("a",)
    assert purgatory.statistics() == before
    assert purgatory.check_and_complete("b") == 0
    gate.opened = True
    assert purgatory.check_and_complete("a") == 1


async def test_promise_13_a_key_named_twice_is_watched_once(purgatory: Purgatory) -> None:
    gate = purgatory.try_complete_else_watch(Gate(), ["a", "b", "a", "b", "a"])
    assert gate.keys == ("a", "b")
    assert purgatory.statistics().watched == 2
    purgatory.check_and_complete("a")
    assert gate.ran == ["try_complete", "try_complete"]


async def test_promise_13_a_key_that_cannot_be_compared_is_refused_whole(purgatory: Purgatory) -> None:
    class Partition:
        def __init__(self, number: int) -> None:
            self.number = number

        def __hash__(self) -> int:
            return hash(self.number)

        def __eq__(self, other: object) -> bool:
            return self.number == other.number  # type: ignore[attr-defined, no-any-return]

    purgatory.try_complete_else_watch(Gate(), [1])
    before = purgatory.statistics()
    gate = Gate()
    with pytest.raises(AttributeError, match="number"):
        purgatory.try_complete_else_watch(gate, ["other", Partition(1)])
    assert purgatory.statistics() == before
    assert purgatory.operations("other") == []
    assert gate.state.name == "NEW"
    assert purgatory.try_complete_else_watch(gate, ["other"]).state is OperationState.PENDING


# 14. Survives


class HookedKey:
    """A key whose comparison runs a user's code."""

    action: Callable[[], object] = staticmethod(lambda: None)

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        self.action()
        return False


def test_promise_14_an_operation_is_parked_wholly_or_not_at_all_when_a_comparison_raises() -> None:
    clock = ManualClock()
    held = clock.purgatory()
    key = HookedKey()
    bystander = held.try_complete_else_watch(Gate(60), [key])
    key.action = raising(ArithmeticError("not with that"))
    refused = Gate(5)
    with pytest.raises(ArithmeticError):
        held.try_complete_else_watch(refused, ["first", HookedKey()])
    assert (refused.state, refused.scheduled, refused.keys) == (OperationState.NEW, False, ())
    assert held.operations() == [bystander]
    assert len(held.timer) == 1
    # The refused operation can be offered again, and the others go on.
    held.try_complete_else_watch(refused, ["second"])
    clock.advance(5)
    assert (refused.state, bystander.state) == (OperationState.EXPIRED, OperationState.PENDING)


@pytest.mark.parametrize("end", [Gate.force_complete, Gate.cancel])
def test_promise_14_an_operation_that_a_comparison_ends_while_it_is_parked_leaves_every_book(
    end: Callable[[Gate], bool],
) -> None:
    held = ManualClock().purgatory()
    key = HookedKey()
    bystander = held.try_complete_else_watch(Gate(60), [key])
    gate = Gate(5)
    key.action = lambda: end(gate)
    held.try_complete_else_watch(gate, ["first", HookedKey(), "last"])
    assert gate.done
    assert gate.ran.count("on_complete") == (end is Gate.force_complete)
    assert held.operations() == [bystander]
    assert (held.statistics().pending, held.statistics().watched, len(held.timer)) == (1, 1, 1)
    assert end(bystander)
    assert (held.statistics().pending, held.statistics().keys, held.timer.armed) == (0, 0, False)
