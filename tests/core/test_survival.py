"""Failures, interrupts and long chains, wherever they come.

Each operation is wholly parked or not at all, and once it is decided it leaves every book.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import itertools
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Generator
from contextvars import Context
from functools import partial
from typing import Any, TypeVarTuple

import pytest

from purgatory import (
    DelayedOperation,
    OperationState,
    OperationWithdrawn,
    Purgatory,
    PurgatoryClosed,
    PurgatoryFull,
    Timer,
    TimerTask,
    TimingWheel,
)
from purgatory._core.waiting import abandon, wake_when_done
from purgatory.observer import Timing
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.conftest import LoopFactory
from tests.core.executed import executed
from tests.core.invariants import check_wheel
from tests.core.keys import Key
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, Stop, a_few_turns, raising

Ts = TypeVarTuple("Ts")

PENDING, COMPLETED, EXPIRED, CANCELLED, FAILED = list(OperationState)[1:]


class Observing:
    """An observer that calls functions."""

    def __init__(
        self,
        finished: Callable[[DelayedOperation[Any]], object] = lambda _: None,
        checked: Callable[[], object] = lambda: None,
    ) -> None:
        self.finished = finished
        self.checked = checked

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        self.finished(operation)

    def key_checked(self, purgatory: str, key: object, tried: int, completed: int, at: float) -> None:
        self.checked()


# Coverage's tracer would start in a program, and triple its time.
UNTRACED = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


def run_program(program: str) -> str:
    """Run a program in a process of its own, because it may crash the interpreter. Returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        env=UNTRACED,
        text=True,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2_000:])
    return done.stdout.strip()


# Crashes


THROWING = """
import asyncio
from purgatory import DelayedOperation, Purgatory

class Waiting(DelayedOperation):
    def try_complete(self):
        return False

async def wait(operation):
    await operation

async def main():
    async with Purgatory() as purgatory:
        operation = purgatory.try_complete_else_watch(Waiting(None), ["key"])
        waiting = wait(operation)
        waiting.send(None)
        try:
            waiting.throw(3)
        except TypeError:
            print(operation.state.name, purgatory.statistics().pending)

asyncio.run(main())
"""


def test_throwing_what_is_no_exception_into_a_waiting_coroutine_raises_a_type_error_and_withdraws() -> None:
    assert run_program(THROWING) == "CANCELLED 0"


# Chains that need no stack


@pytest.mark.parametrize(
    ("hook", "act"),
    [
        ("on_complete", "force_complete"),
        ("on_complete", "reschedule"),
        ("on_expiration", "reschedule"),
        ("observer", "force_complete"),
        ("observer", "cancel"),
        ("observer", "reschedule"),
    ],
)
@pytest.mark.usefixtures("untraced")
def test_a_chain_of_operations_that_end_one_another_needs_no_stack(hook: str, act: str) -> None:
    many = 100_000 if hook == "on_complete" else 20_000

    class Link(DelayedOperation[None]):
        following: Link | None = None

        def try_complete(self) -> bool:
            return False

        def end_the_next(self) -> None:
            if self.following is None:
                return
            if act == "force_complete":
                assert self.following.force_complete()
            elif act == "cancel":
                assert self.following.cancel()
            else:
                assert self.following.reschedule(0)

        def on_complete(self) -> None:
            if hook == "on_complete":
                self.end_the_next()

        def on_expiration(self) -> None:
            if hook == "on_expiration":
                self.end_the_next()

    def finished(operation: DelayedOperation[Any]) -> None:
        assert isinstance(operation, Link)
        operation.end_the_next()

    purgatory = ManualClock().purgatory(observers=[Observing(finished)] if hook == "observer" else [])
    links = [purgatory.try_complete_else_watch(Link(60), ["key"]) for _ in range(many)]
    for link, following in itertools.pairwise(links):
        link.following = following
    links[0].reschedule(0)
    assert all(link.done for link in links)
    assert nothing_is_left(purgatory)


# Waiters that cannot be woken


@pytest.mark.parametrize("how", ["completes", "is withdrawn", "fails"])
def test_an_operation_that_a_task_of_a_closed_loop_awaits_ends_as_any_other(
    loop_factory: LoopFactory, how: str
) -> None:
    async def wait(operation: Gate) -> str:
        return await operation

    clock = ManualClock()
    purgatory = clock.purgatory()
    gate = purgatory.try_complete_else_watch(Gate(60), ["key"])
    loop = loop_factory()
    task: Any = loop.create_task(wait(gate))
    loop.run_until_complete(a_few_turns())
    loop.close()
    # It is dropped while it waits, and a loop complains of that.
    task._log_destroy_pending = False
    if how == "completes":
        assert gate.force_complete()
        assert gate.result() == "gate"
    elif how == "is withdrawn":
        assert gate.cancel()
    else:
        gate.completing = raising(ValueError("hook"))
        assert gate.force_complete()
        assert gate.state is FAILED
        assert isinstance(gate.exception(), ValueError)
    assert nothing_is_left(purgatory)
    other = purgatory.try_complete_else_watch(Gate(), ["key"])
    other.opened = True
    assert purgatory.check_and_complete("key") == 1
    with pytest.raises(ExceptionGroup) as caught:
        clock.advance(0)
    assert [type(error) for error in caught.value.exceptions] == [RuntimeError]


class Broken:
    """A waiter that raises when it is woken."""

    def cancelled(self) -> bool:
        return False

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def done(self) -> bool:
        return False

    def set_result(self, result: None) -> None:
        raise Stop


@pytest.mark.parametrize("error", [None, ValueError("hook")])
def test_an_operation_of_no_purgatory_raises_what_its_hook_raises_or_else_its_waiter(
    error: Exception | None,
) -> None:
    gate = Gate(completing=None if error is None else raising(error))
    wake_when_done(gate, Broken())
    with pytest.raises(Stop if error is None else ValueError):
        gate.force_complete()
    assert gate.exception() is error


async def test_a_waiter_that_cannot_be_woken_keeps_no_other_one_from_waking(
    reported: list[dict[str, Any]],
) -> None:
    async def wait() -> str:
        return await gate

    async with Purgatory() as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(), ["key"])
        tasks = [asyncio.ensure_future(wait())]
        await a_few_turns()
        wake_when_done(gate, Broken())
        tasks.append(asyncio.ensure_future(wait()))
        await a_few_turns()
        assert gate.force_complete()
        assert await asyncio.gather(*tasks) == ["gate", "gate"]
    assert [type(context["exception"]) for context in reported] == [Stop]
    assert "could not be woken" in reported[0]["message"]


# Nothing is half kept


def refused_whole(purgatory: Purgatory, gate: Gate) -> bool:
    """Whether the purgatory keeps nothing of an operation. It can be offered again."""
    assert gate.state is OperationState.NEW
    assert gate.keys == ()
    assert "new" in repr(gate)
    return nothing_is_left(purgatory) and "pending=0" in repr(purgatory)


@pytest.mark.parametrize("timeout", [5, None, 1e300])
def test_an_operation_that_is_in_the_users_own_timer_is_refused_and_nothing_of_it_is_kept(
    timeout: float | None,
) -> None:
    clock: Any = ManualClock()
    purgatory: Purgatory = clock.purgatory()
    timer = Timer()
    timer.start(clock)
    gate = Gate(timeout)
    timer.add(gate, 3)
    with pytest.raises(RuntimeError, match="in a timing wheel already"):
        purgatory.try_complete_else_watch(gate, ["a", "b"])
    assert refused_whole(purgatory, gate)
    assert gate.scheduled
    assert len(timer) == 1
    assert timer.remove(gate)
    purgatory.try_complete_else_watch(gate, ["a", "b"])
    assert gate.state is PENDING
    clock.advance(5)
    assert gate.state is (EXPIRED if timeout == 5 else PENDING)


def test_an_operation_that_nobody_offered_expires_in_the_users_own_timer() -> None:
    clock: Any = ManualClock()
    timer = Timer()
    timer.start(clock)
    gate = Gate(5)
    timer.add(gate, 3)
    clock.advance(4)
    timer.wake()
    timer.run_due()
    assert gate.state is EXPIRED
    assert not gate.scheduled
    assert len(timer) == 0


def test_offering_on_a_closed_loop_raises_and_nothing_is_kept(loop_factory: LoopFactory) -> None:
    loop = loop_factory()
    purgatory = Purgatory()
    purgatory._open_on(loop)
    loop.close()
    gate = Gate(60)
    with pytest.raises(RuntimeError, match="closed"):
        purgatory.try_complete_else_watch(gate, ["a", "b"])
    assert refused_whole(purgatory, gate)


class ArmingClock(ManualClock):
    """Calls a function of the test when a timer is armed."""

    def __init__(self) -> None:
        super().__init__()
        self.arming: Callable[[], object] = bool

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.arming()
        return super().call_at(when, callback, *args, context=context)


def test_what_ends_in_the_middle_of_rescheduling_leaves_the_wheel() -> None:
    clock = ArmingClock()
    purgatory = clock.purgatory()
    gate, other = (purgatory.try_complete_else_watch(Gate(60), ["a"]) for _ in range(2))
    clock.arming = lambda: gate.cancel() and other.force_complete()
    assert gate.reschedule(5)
    assert (gate.state, other.ran) == (CANCELLED, ["try_complete", "on_complete"])
    assert nothing_is_left(purgatory)


def test_a_new_timeout_that_comes_while_the_timer_is_armed_for_the_old_one_counts() -> None:
    clock = ArmingClock()
    purgatory = clock.purgatory()
    gate = Gate(60)
    clock.arming = lambda: gate.timeout == 60 and gate.reschedule(5)
    purgatory.try_complete_else_watch(gate, ["a"])
    assert gate.deadline == 5
    clock.advance(5)
    assert gate.state is EXPIRED


@pytest.mark.parametrize("act", ["parks", "closes"])
def test_what_parks_or_closes_while_the_next_wake_up_is_armed_finds_its_own_armed(act: str) -> None:
    clock = ArmingClock()
    purgatory = clock.purgatory()
    first, last = (purgatory.try_complete_else_watch(Gate(timeout), ["a"]) for timeout in (1, 60))
    between = Gate(9)

    def arming() -> None:
        if first.done and not between.keys:
            purgatory.try_complete_else_watch(between, ["b"])
            if act == "closes":
                purgatory._engine.shut()

    clock.arming = arming
    clock.advance(11)
    assert between.done == (act == "parks")
    assert purgatory.timer.armed == (act == "parks")
    assert not last.done


@pytest.mark.parametrize("error", [ValueError("call_at"), Stop()])
def test_a_loop_that_refuses_to_arm_a_timer_makes_the_offer_or_the_new_timeout_fail_as_a_whole(
    error: BaseException,
) -> None:
    clock = ArmingClock()
    purgatory = clock.purgatory()
    clock.arming = raising(error)
    gate = Gate(60)
    with pytest.raises(type(error)):
        purgatory.try_complete_else_watch(gate, ["a", "b"])
    assert refused_whole(purgatory, gate)
    clock.arming = bool
    purgatory.try_complete_else_watch(gate, ["a", "b"])
    clock.arming = raising(error)
    with pytest.raises(type(error)):
        gate.reschedule(5)
    assert gate.state is PENDING
    assert gate.deadline == 60
    clock.arming = bool
    clock.advance(60)
    assert gate.state is EXPIRED
    assert nothing_is_left(purgatory)


# Copies


@pytest.mark.parametrize("state", ["new", "pending", "done"])
@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_operation_can_be_neither_copied_nor_pickled(copying: Callable[[Any], object], state: str) -> None:
    purgatory = ManualClock().purgatory()
    gate = Gate(60)
    if state != "new":
        purgatory.try_complete_else_watch(gate, ["a"])
    if state == "done":
        gate.cancel()
    for task in (gate, TimerTask()):
        with pytest.raises(TypeError, match="cannot copy or pickle"):
            copying(task)
    if state == "pending":
        gate.opened = True
        assert purgatory.check_and_complete("a") == 1
    assert nothing_is_left(purgatory)


# A second __init__


@pytest.mark.parametrize("timeout", [60, None])
def test_a_pending_operation_refuses_a_second_init_and_goes_on(timeout: float | None) -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    gate = purgatory.try_complete_else_watch(Gate(timeout), ["a", "b"])
    other = purgatory.try_complete_else_watch(Gate(60), ["a"])
    with pytest.raises(RuntimeError, match="was offered or scheduled before: make a new operation"):
        gate.__init__(1.0)  # type: ignore[misc]

    assert (gate.state, gate.timeout, gate.keys) == (PENDING, timeout, ("a", "b"))
    clock.advance(60)
    assert other.expired
    assert gate.expired is (timeout is not None)
    gate.opened = True
    assert purgatory.check_and_complete("b") == (timeout is None)
    assert gate.ran.count("on_complete") == 1
    assert nothing_is_left(purgatory)


def test_an_operation_that_was_refused_may_be_initialized_again() -> None:
    purgatory = ManualClock().purgatory(max_pending=1)
    purgatory.try_complete_else_watch(Gate(), ["a"])
    gate = Gate(60)
    with pytest.raises(PurgatoryFull):
        purgatory.try_complete_else_watch(gate, ["a"])
    gate.__init__(30)  # type: ignore[misc]
    assert gate.timeout == 30


@pytest.mark.parametrize("opened", [False, True], ids=["being tried", "done"])
def test_an_operation_that_was_offered_refuses_a_second_init(opened: bool) -> None:
    def initialize_again() -> None:
        with pytest.raises(RuntimeError, match="was offered or scheduled before"):
            gate.__init__(1.0)  # type: ignore[misc]

    gate = Gate(60, opened=opened, trying=initialize_again)
    ManualClock().purgatory().try_complete_else_watch(gate, ["a"])
    if opened:
        initialize_again()
    assert (gate.done, gate.timeout) == (opened, 60)


@pytest.mark.parametrize("make", [TimerTask, lambda: Gate(5)])
def test_a_scheduled_task_refuses_a_second_init(make: Callable[[], TimerTask]) -> None:
    wheel = TimingWheel(20)
    tasks = [make() for _ in range(3)]
    for task in tasks:
        wheel.add(task, 500)
    with pytest.raises(RuntimeError, match="make a new"):
        tasks[1].__init__()  # type: ignore[misc]

    check_wheel(wheel)
    assert wheel.advance(500) == tasks
    assert len(wheel) == 0


# Costs that grow linearly


class Counting(Broken):
    """A waiter that counts how often any of its kind is compared."""

    compared = 0

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        Counting.compared += 1
        return self is other

    def set_result(self, result: None) -> None:
        pass


def test_waiters_that_give_up_newest_first_are_not_compared() -> None:
    gate = ManualClock().purgatory().try_complete_else_watch(Gate(), ["key"])
    waiters = [Counting() for _ in range(1_000)]
    for waiter in waiters:
        wake_when_done(gate, waiter)
    Counting.compared = 0
    for waiter in reversed(waiters):
        assert not gate.done
        abandon(gate, waiter)
    assert gate.state is CANCELLED
    assert Counting.compared == 0


async def test_no_waiter_of_a_withdrawn_operation_formats_its_keys() -> None:
    async def wait() -> str:
        return await gate

    async with Purgatory() as purgatory:
        key = Key("key", 7)
        gate = purgatory.try_complete_else_watch(Gate(), [key])
        tasks = [asyncio.ensure_future(wait()) for _ in range(10)]
        await a_few_turns()
        gate.cancel()
        for task in tasks:
            with pytest.raises(OperationWithdrawn, match="Gate was withdrawn"):
                await task
        assert key.formatted == 0


@pytest.mark.parametrize("shared", [False, True])
def test_the_cost_of_a_list_of_the_operations_grows_linearly_with_the_keys(shared: bool) -> None:
    def cost(many: int) -> tuple[int, int]:
        purgatory = ManualClock().purgatory()
        counted = [0]
        keys = [Key(str(number), number) for number in range(many)]
        for _ in range(2 if shared else 1):
            purgatory.try_complete_else_watch(Gate(), keys)
        for key in keys:
            key.comparing = key.hashing = partial(counted.__setitem__, 0, 1)
        lines = executed("line", purgatory.operations) + executed(
            "line", lambda: purgatory.watched_keys(10 * many)
        )
        return lines, counted[0]

    lines, compared = cost(200)
    assert compared == 0
    more_lines, compared = cost(2_000)
    assert compared == 0
    assert more_lines <= 12 * lines


# Tasks that start inside a hook and await the operation


def begin(operation: DelayedOperation[Any]) -> Generator[Any, None, Any]:
    """Await `operation` up to where a task would be suspended, as an eager task does on Python 3.12."""
    waiting = operation.__await__()
    next(waiting)
    return waiting


def finish(waiting: Generator[Any, None, Any]) -> object:
    with pytest.raises(StopIteration) as caught:
        waiting.send(None)
    return caught.value.value


@pytest.mark.parametrize("how", ["completes", "expires"])
async def test_a_wait_that_begins_in_on_complete_gets_the_outcome(how: str) -> None:
    waits: list[Generator[Any, None, Any]] = []
    async with Purgatory() as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(60), ["key"])
        gate.completing = lambda: waits.append(begin(gate))
        assert gate.force_complete() if how == "completes" else gate.reschedule(0)
        assert gate.state is (COMPLETED if how == "completes" else EXPIRED)
        assert finish(waits[0]) == "gate"


async def test_a_wait_that_begins_in_a_hook_gets_the_failure_of_a_later_hook() -> None:
    waits: list[Generator[Any, None, Any]] = []

    def wait_and_fail() -> None:
        waits.append(begin(gate))
        raise ValueError("hook")

    async with Purgatory() as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(60), ["key"])
        gate.expiring = wait_and_fail
        gate.completing = lambda: waits.append(begin(gate))
        assert gate.reschedule(0)
        assert gate.state is FAILED
        for waiting in waits:
            with pytest.raises(ValueError, match="hook"):
                waiting.send(None)
    assert len(waits) == 2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
@pytest.mark.parametrize("hook", ["completing", "expiring"])
@pytest.mark.parametrize("fails", [False, True])
async def test_an_eager_task_that_a_hook_starts_gets_the_final_outcome(hook: str, fails: bool) -> None:
    tasks: list[asyncio.Task[str]] = []

    async def wait() -> str:
        return await gate

    def start() -> None:
        make: Any = asyncio.Task
        tasks.append(make(wait(), loop=asyncio.get_running_loop(), eager_start=True))
        if fails:
            raise ValueError("hook")

    async with Purgatory() as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(60), ["key"])
        setattr(gate, hook, start)
        gate.reschedule(0)
        assert gate.state is (FAILED if fails else EXPIRED)
        if fails:
            with pytest.raises(ValueError, match="hook"):
                await tasks[0]
        else:
            assert await tasks[0] == "gate"


# Deadlines, ticks and timeouts at their bounds


@pytest.mark.parametrize("timeout", [0, -5])
def test_a_new_timeout_that_is_over_sets_the_deadline_to_now_before_an_observer_looks(timeout: float) -> None:
    deadlines: list[float | None] = []
    clock = ManualClock()
    purgatory = clock.purgatory(observers=[Observing(lambda operation: deadlines.append(operation.deadline))])
    gate = purgatory.try_complete_else_watch(Gate(1_000), ["key"])
    gate.completing = lambda: deadlines.append(gate.deadline)
    clock.advance(7)
    assert gate.reschedule(timeout)
    assert gate.state is EXPIRED
    assert deadlines == [7, 7]


@pytest.mark.parametrize("tick", [0, -1, 5e-324, 1e-300, 9e-7, 86_401, 1e300, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", [Timer, Purgatory])
def test_a_tick_out_of_bounds_is_refused_with_the_bounds(kind: Any, tick: float) -> None:
    with pytest.raises(ValueError, match=r"from 1e-06 to 86400\.0"):
        kind(tick=tick)


@pytest.mark.parametrize("tick", [1e-6, 86_400])
def test_operations_expire_by_the_shortest_and_by_the_longest_tick(tick: float) -> None:
    clock = ManualClock()
    purgatory = clock.purgatory(tick=tick)
    gate = purgatory.try_complete_else_watch(Gate(2.5 * tick), ["key"])
    clock.advance(2 * tick)
    assert not gate.done
    clock.advance(tick)
    assert gate.expired


def test_a_timeout_that_no_float_can_hold_raises_an_overflow_error() -> None:
    with pytest.raises(OverflowError, match="use None for no timeout"):
        Gate(10**400)
    gate = ManualClock().purgatory().try_complete_else_watch(Gate(60), ["key"])
    with pytest.raises(OverflowError, match="use None for no timeout"):
        gate.reschedule(10**400)
    assert gate.timeout == 60
    assert gate.state is PENDING


# Interrupts while a purgatory closes


@pytest.mark.parametrize("interrupt", [SystemExit(3), KeyboardInterrupt(), Stop(), ValueError("observer")])
async def test_an_observer_that_raises_while_a_failed_reaper_closes_leaves_nothing_pending(
    reported: list[dict[str, Any]], interrupt: BaseException
) -> None:
    def raise_at_the_second(operation: DelayedOperation[Any]) -> None:
        ended.append(operation)
        if len(ended) == 2:
            raise interrupt

    async def wait(gate: Gate) -> str:
        return await gate

    ended: list[DelayedOperation[Any]] = []
    purgatory = Purgatory(observers=[Observing(raise_at_the_second)])
    purgatory._open_on(asyncio.get_running_loop())
    gates = [purgatory.try_complete_else_watch(Gate(60), [number]) for number in range(5)]
    tasks = [asyncio.ensure_future(wait(gate)) for gate in gates]
    await a_few_turns()
    failure = ValueError("reaper")
    if isinstance(interrupt, Exception):
        purgatory._lifecycle._failed(failure)
    else:
        with pytest.raises(type(interrupt)):
            purgatory._lifecycle._failed(failure)
    assert {gate.state for gate in gates} == {FAILED}
    assert len(ended) == 5
    assert nothing_is_left(purgatory)
    assert await asyncio.gather(*tasks, return_exceptions=True) == [failure] * 5
    with pytest.raises(PurgatoryClosed):
        purgatory.try_complete_else_watch(Gate(), ["key"])
    await purgatory.aclose()


@pytest.mark.parametrize("cancel_pending", [False, True])
async def test_closing_ends_everything_also_when_every_hook_and_observer_raises(
    virtual_time: VirtualTimeLoop, reported: list[dict[str, Any]], cancel_pending: bool
) -> None:
    error = ValueError("raised everywhere")
    purgatory = Purgatory(observers=[Observing(lambda _: raising(error)())])
    purgatory.start()
    gates = [
        purgatory.try_complete_else_watch(Gate(60, completing=raising(error)), [number, number % 3])
        for number in range(50)
    ]
    await asyncio.wait_for(purgatory.aclose(cancel_pending=cancel_pending), 1)
    assert {gate.state for gate in gates} == {CANCELLED if cancel_pending else FAILED}
    assert nothing_is_left(purgatory)
    await a_few_turns()
    assert {context["exception"] for context in reported} == {error}


# A wait that is dropped


@pytest.mark.parametrize("others", [0, 1])
async def test_dropping_the_iterator_of_a_wait_half_way_withdraws_unless_another_waits(others: int) -> None:
    async with Purgatory() as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(), ["key"])
        kept = [begin(gate) for _ in range(others)]
        dropped = begin(gate)
        del dropped
        gc.collect()
        assert gate.state is (PENDING if others else CANCELLED)
        kept.clear()
        assert gate.state is CANCELLED
    assert nothing_is_left(purgatory)
