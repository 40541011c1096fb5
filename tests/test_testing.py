"""Virtual time and time moved by hand, which users build their own tests on."""

from __future__ import annotations

import asyncio
import contextvars
import math
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, TypeVar

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory import (
    DelayedOperation,
    OperationState,
    Purgatory,
    PurgatoryClosed,
    PurgatoryError,
    PurgatoryFull,
)
from purgatory.observer import Timing
from purgatory.testing import ManualClock, VirtualTimeLoop, WouldWaitForever

T = TypeVar("T")


class Wait(DelayedOperation[str]):
    """Completes when told to; writes down how it ended, and does what it was made for."""

    def __init__(
        self,
        timeout: float | None,
        name: str = "wait",
        log: list[Any] | None = None,
        action: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(timeout)
        self.name = name
        self.log: list[Any] = [] if log is None else log
        self.action = action
        self.holds = False

    def try_complete(self) -> bool:
        return self.force_complete() if self.holds else False

    def on_complete(self) -> str:
        self.log.append(self.name)
        if self.action is not None:
            self.action()
        return self.name


def on_virtual_time(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What `main` returns or raises, on a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


# The virtual-time loop


async def test_an_hour_of_timeouts_passes_at_once(virtual_time: VirtualTimeLoop) -> None:
    begun = time.monotonic()
    assert virtual_time.time() == 0.0
    for _ in range(60):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
    assert virtual_time.time() == 3600.0
    assert time.monotonic() - begun < 60


@pytest.mark.timeout(20)
async def test_years_of_sleep_pass_at_once(virtual_time: VirtualTimeLoop) -> None:
    await asyncio.sleep(10 * 365 * 86_400)
    assert virtual_time.time() == 10 * 365 * 86_400


@pytest.mark.timeout(20)
def test_time_jumps_to_a_timer_that_is_ages_away_as_fast_as_to_a_near_one() -> None:
    async def main() -> float:
        await asyncio.sleep(1e12)
        return asyncio.get_running_loop().time()

    assert on_virtual_time(main) == 1e12


def test_virtual_time_passes_in_debug_mode_too() -> None:
    async def main() -> float:
        await asyncio.sleep(3600)
        await asyncio.to_thread(int)
        return asyncio.get_running_loop().time()

    with asyncio.Runner(debug=True, loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(main()) == 3600.0


async def test_time_stands_still_while_code_runs(virtual_time: VirtualTimeLoop) -> None:
    before = virtual_time.time()
    for _ in range(1000):
        await asyncio.sleep(0)
    assert virtual_time.time() == before


async def test_timers_ring_in_the_order_of_their_times(virtual_time: VirtualTimeLoop) -> None:
    rung: list[tuple[str, float]] = []

    def ring(name: str) -> None:
        rung.append((name, virtual_time.time()))

    for name, delay in (("c", 3.0), ("a", 1.0), ("d", 86_400.0), ("b", 2.0)):
        virtual_time.call_later(delay, ring, name)
    virtual_time.call_later(1.5, lambda: virtual_time.call_later(1.0, ring, "new"))
    await asyncio.sleep(100_000)
    assert rung == [("a", 1.0), ("b", 2.0), ("new", 2.5), ("c", 3.0), ("d", 86_400.0)]


def test_the_same_code_always_takes_the_same_course() -> None:
    async def main() -> list[tuple[int, float]]:
        course = []

        async def walk(number: int) -> None:
            for step in range(1, 8):
                await asyncio.sleep(number * step / 7)
                course.append((number, asyncio.get_running_loop().time()))

        await asyncio.gather(*[walk(number) for number in range(1, 8)])
        return course

    assert on_virtual_time(main) == on_virtual_time(main)


@given(delays=st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=10))
def test_whatever_the_delays_no_sleeper_awakes_before_its_time(delays: list[float]) -> None:
    async def main() -> list[tuple[float, float]]:
        loop = asyncio.get_running_loop()
        sleeps = []
        for delay in delays:
            due = loop.time() + delay
            await asyncio.sleep(delay)
            sleeps.append((due, loop.time()))
        return sleeps

    for due, awake in on_virtual_time(main):
        assert awake == due


@pytest.mark.parametrize(
    "times",
    [
        # The sum of the first and the difference is not the second, but a rounding error below or above it.
        pytest.param([307518219.93430525, 979886277.5249707], id="short"),
        pytest.param([326465781.13202447, 991781570.3566276], id="beyond"),
    ],
)
async def test_after_years_timers_still_ring_at_exactly_their_times(
    times: list[float], virtual_time: VirtualTimeLoop
) -> None:
    rung: list[float] = []
    for when in times:
        virtual_time.call_at(when, lambda: rung.append(virtual_time.time()))
    await asyncio.sleep(1e9)
    assert rung == times


async def test_a_jump_that_ends_before_the_next_timer_does_not_ring_it(virtual_time: VirtualTimeLoop) -> None:
    rung: list[float] = []
    virtual_time.call_at(100.0, lambda: rung.append(virtual_time.time()))
    assert virtual_time.jump(99.0) is True
    assert virtual_time.time() == 99.0
    await asyncio.sleep(0)
    assert rung == []
    await asyncio.sleep(1.0)
    assert rung == [100.0]


async def test_operations_expire_by_virtual_time(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        operation = purgatory.try_complete_else_watch(Wait(3600.0), ["key"])
        assert await operation == "wait"
    assert operation.expired
    assert virtual_time.time() == 3600.0


async def test_a_thread_is_waited_for_while_virtual_time_stands_still(virtual_time: VirtualTimeLoop) -> None:
    timer_rang = False
    times = []

    def rang() -> None:
        nonlocal timer_rang
        timer_rang = True

    def work() -> int:
        # Three times out of the thread and back, with the loop at rest in between.
        for _ in range(3):
            seen = threading.Event()

            def look(seen: threading.Event = seen) -> None:
                times.append(virtual_time.time())
                seen.set()

            virtual_time.call_soon_threadsafe(look)
            assert seen.wait(30)
        return 42

    await asyncio.sleep(1.0)
    virtual_time.call_later(10.0, rang)
    assert await virtual_time.run_in_executor(None, work) == 42
    assert times == [1.0, 1.0, 1.0]
    assert not timer_rang
    await asyncio.sleep(20.0)
    assert timer_rang


async def test_threads_can_signal_a_purgatory_on_virtual_time(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        operation = purgatory.try_complete_else_watch(Wait(3600.0), ["key"])
        operation.holds = True
        await asyncio.to_thread(purgatory.check_and_complete_threadsafe, "key")
        assert await operation == "wait"
    assert operation.state is OperationState.COMPLETED
    assert virtual_time.time() == 0.0


async def test_what_a_thread_raises_is_raised_and_time_goes_on(virtual_time: VirtualTimeLoop) -> None:
    def fail() -> None:
        raise LookupError("in a thread")

    with pytest.raises(LookupError, match="in a thread"):
        await virtual_time.run_in_executor(None, fail)
    await asyncio.sleep(5.0)
    assert virtual_time.time() == 5.0


async def test_a_refused_call_to_an_executor_does_not_stop_the_time(virtual_time: VirtualTimeLoop) -> None:
    await virtual_time.run_in_executor(None, int)
    await virtual_time.shutdown_default_executor()
    with pytest.raises(RuntimeError, match="shutdown"):
        virtual_time.run_in_executor(None, int)
    await asyncio.sleep(5.0)
    assert virtual_time.time() == 5.0


async def test_the_default_executor_is_shut_down_when_its_threads_have_ended(
    virtual_time: VirtualTimeLoop,
) -> None:
    release = threading.Event()
    ended = threading.Event()

    def work() -> None:
        assert release.wait(30)
        ended.set()

    future = virtual_time.run_in_executor(None, work)
    shutdown = asyncio.create_task(virtual_time.shutdown_default_executor())
    virtual_time.call_soon(release.set)
    await shutdown
    assert ended.is_set()
    await future
    assert virtual_time.time() == 0.0


def test_a_loop_whose_executor_was_used_closes_cleanly() -> None:
    async def main() -> int:
        return await asyncio.to_thread(lambda: 7)

    assert on_virtual_time(main) == 7


async def test_sockets_are_served_before_time_passes(virtual_time: VirtualTimeLoop) -> None:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    other_reader, other_writer = await asyncio.open_connection(sock=theirs)

    async def echo() -> None:
        while line := await other_reader.readline():
            other_writer.write(line.upper())

    echoing = asyncio.create_task(echo())
    async with asyncio.timeout(10):
        for line in (b"one\n", b"two\n"):
            writer.write(line)
            assert await reader.readline() == line.upper()
    assert virtual_time.time() == 0.0
    writer.close()
    await writer.wait_closed()
    await echoing
    other_writer.close()
    await other_writer.wait_closed()


async def test_a_socket_that_stays_silent_times_out_in_virtual_time(virtual_time: VirtualTimeLoop) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs, pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await virtual_time.sock_recv(ours, 1)
    assert virtual_time.time() == 30.0


# Waiting for ever


async def never() -> None:
    await asyncio.Event().wait()


def test_when_nothing_is_left_to_wait_for_the_error_names_the_tasks_and_where_they_wait() -> None:
    async def main() -> None:
        others = [asyncio.create_task(never(), name=name) for name in ("second", "first")]
        await asyncio.sleep(10.0)
        await others[0]

    with pytest.raises(WouldWaitForever) as caught:
        on_virtual_time(main)
    first_line, *lines = str(caught.value).splitlines()
    assert first_line == (
        "nothing is left to run, and no timer to wait for; these tasks would wait for ever:"
    )
    # In the order of their names.
    assert [line.split(":")[0].strip() for line in lines][1:] == ["first", "second"]
    assert len(lines) == 3
    place = f"{__file__}:{never.__code__.co_firstlineno + 1} in never"
    assert lines[1] == f"  first: {place}"
    assert lines[2] == f"  second: {place}"


def test_waiting_for_ever_is_an_error_of_this_library_and_leaves_a_loop_that_can_be_closed() -> None:
    cleaned_up = []

    async def main() -> None:
        try:
            await never()
        finally:
            await asyncio.sleep(1.0)
            cleaned_up.append(asyncio.get_running_loop().time())

    with pytest.raises(PurgatoryError):
        on_virtual_time(main)
    # Closing the runner cancels the task, and time passes for what it does then.
    assert cleaned_up == [1.0]


def test_an_operation_without_a_timeout_that_nobody_completes_would_wait_for_ever() -> None:
    async def main() -> None:
        async with Purgatory() as purgatory:
            await purgatory.try_complete_else_watch(Wait(None), ["key"])

    with pytest.raises(WouldWaitForever, match=r"test_testing\.py:\d+ in main"):
        on_virtual_time(main)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "sleep",
    [
        pytest.param(anyio.sleep_forever, id="anyio.sleep_forever"),
        pytest.param(lambda: asyncio.sleep(math.inf), id="asyncio.sleep(inf)"),
        pytest.param(lambda: asyncio.wait_for(never(), math.inf), id="asyncio.wait_for(…, inf)"),
    ],
)
def test_a_timer_that_is_never_due_is_no_timer_to_wait_for(
    sleep: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    with pytest.raises(WouldWaitForever):
        on_virtual_time(sleep)


# The clock moved by hand


def test_ten_steps_of_a_tenth_make_one() -> None:
    clock = ManualClock()
    assert clock.time() == 0.0
    for _ in range(10):
        clock.advance(0.1)
    assert clock.time() == 1.0


def test_an_operation_expires_in_the_step_that_reaches_its_deadline() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    operation = purgatory.try_complete_else_watch(Wait(1.0), ["key"])
    for _ in range(9):
        clock.advance(0.1)
        assert operation.state is OperationState.PENDING
    clock.advance(0.1)
    assert operation.state is OperationState.EXPIRED
    assert operation.result() == "wait"


@pytest.mark.parametrize(
    ("tick", "timeout"), [(0.1, 0.3), (0.1, 0.7), (0.001, 0.3), (0.01, 0.29), (1 / 3, 1.0), (0.1, 1.1)]
)
def test_a_step_as_long_as_the_timeout_expires_it_and_a_shorter_one_does_not(
    tick: float, timeout: float
) -> None:
    clock = ManualClock()
    purgatory = clock.purgatory(tick=tick)
    operation = purgatory.try_complete_else_watch(Wait(timeout), ["key"])
    clock.advance(timeout - 0.0001)
    assert not operation.done
    clock.advance(0.0001)
    assert operation.expired


def test_a_deadline_between_two_ticks_is_rounded_up() -> None:
    clock = ManualClock()
    operation = clock.purgatory(tick=0.1).try_complete_else_watch(Wait(0.25), ["key"])
    clock.advance(0.25)
    assert not operation.done
    clock.advance(0.05)
    assert operation.expired


def test_while_time_passes_hooks_see_the_time_at_which_they_were_due() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    times: list[float] = []
    for timeout in (5.0, 0.5, 3.0):
        purgatory.try_complete_else_watch(Wait(timeout, action=lambda: times.append(clock.time())), ["key"])
    clock.advance(10.0)
    assert times == [0.5, 3.0, 5.0]
    assert clock.time() == 10.0


def test_several_purgatories_expire_in_the_order_of_time() -> None:
    clock = ManualClock()
    log: list[str] = []
    fetch, produce = clock.purgatory("fetch"), clock.purgatory("produce", tick=0.1)
    for purgatory, timeout in ((fetch, 1.0), (produce, 2.0), (fetch, 3.0), (produce, 0.5), (fetch, 2.5)):
        purgatory.try_complete_else_watch(Wait(timeout, f"{purgatory.name} {timeout}", log), ["key"])
    clock.advance(5.0)
    assert log == ["produce 0.5", "fetch 1.0", "produce 2.0", "fetch 2.5", "fetch 3.0"]


def test_many_operations_due_at_one_instant_all_expire_in_one_step_first_in_first_out() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    log: list[str] = []
    names = [str(number) for number in range(1000)]
    for name in names:
        purgatory.try_complete_else_watch(Wait(1.0, name, log), ["key"])
    clock.advance(1.0)
    assert log == names
    assert purgatory.statistics().pending == 0


def test_an_operation_that_has_completed_is_not_expired_and_costs_no_wake_up() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    operation = purgatory.try_complete_else_watch(Wait(1.0), ["key"])
    operation.holds = True
    assert purgatory.check_and_complete("key") == 1
    clock.advance(10.0)
    assert operation.state is OperationState.COMPLETED
    assert operation.log == ["wait"]
    assert purgatory.statistics().wakeups == 0


def test_an_operation_that_comes_later_and_is_due_earlier_expires_in_time() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    log: list[str] = []
    purgatory.try_complete_else_watch(Wait(10.0, "first", log), ["key"])
    clock.advance(1.0)
    purgatory.try_complete_else_watch(Wait(1.0, "second", log), ["key"])
    clock.advance(1.0)
    assert log == ["second"]
    clock.advance(8.0)
    assert log == ["second", "first"]


@pytest.mark.parametrize("seconds", [-0.1, -1e-9, -math.inf])
def test_time_cannot_go_back(seconds: float) -> None:
    clock = ManualClock()
    clock.advance(1.0)
    with pytest.raises(ValueError, match="time cannot go back"):
        clock.advance(seconds)
    assert clock.time() == 1.0


def test_a_step_of_nothing_lets_no_time_pass() -> None:
    clock = ManualClock()
    clock.advance(1.0)
    clock.advance(0)
    assert clock.time() == 1.0


def test_it_takes_the_options_of_a_purgatory() -> None:
    checks: list[Hashable] = []

    class Checks:
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None: ...

        def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
            checks.append(key)

    clock = ManualClock()
    purgatory = clock.purgatory("small", tick=0.5, wheel_size=2, max_pending=1, observers=[Checks()])
    assert purgatory.name == "small"
    operation = purgatory.try_complete_else_watch(Wait(0.2), ["key"])
    with pytest.raises(PurgatoryFull):
        purgatory.try_complete_else_watch(Wait(0.2), ["key"])
    purgatory.check_and_complete("key")
    assert checks == ["key"]
    clock.advance(0.4)
    assert not operation.done
    clock.advance(0.1)
    assert operation.expired


def test_errors_are_collected_and_raised_together_when_all_the_time_has_passed() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    errors = [LookupError("first"), OSError("second")]

    def fail(error: Exception) -> None:
        raise error

    failing = [
        purgatory.try_complete_else_watch(Wait(1.0, action=lambda: fail(errors[0])), ["key"]),
        purgatory.try_complete_else_watch(Wait(2.0, action=lambda: fail(errors[1])), ["key"]),
    ]
    good = purgatory.try_complete_else_watch(Wait(3.0), ["key"])
    with pytest.raises(ExceptionGroup, match="raised while the clock was advanced, or before") as caught:
        clock.advance(5.0)
    assert list(caught.value.exceptions) == errors
    assert [operation.state for operation in failing] == [OperationState.FAILED] * 2
    assert good.expired
    assert clock.time() == 5.0
    # Raised once, not again.
    clock.advance(1.0)


def test_what_failed_before_the_step_is_raised_by_it_unless_somebody_has_seen_it() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()

    def fail() -> None:
        raise LookupError("at once")

    seen = purgatory.try_complete_else_watch(Wait(1.0, action=fail), ["seen"])
    unseen = purgatory.try_complete_else_watch(Wait(1.0, action=fail), ["unseen"])
    for operation in (seen, unseen):
        operation.holds = True
    purgatory.check_and_complete("seen")
    purgatory.check_and_complete("unseen")
    assert isinstance(seen.exception(), LookupError)
    with pytest.raises(ExceptionGroup) as caught:
        clock.advance(0)
    assert caught.value.exceptions == (unseen.exception(),)


def test_a_hook_that_looked_at_something_cancelled_is_among_the_errors() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    withdrawn = purgatory.try_complete_else_watch(Wait(None), ["key"])
    withdrawn.cancel()
    looking = purgatory.try_complete_else_watch(Wait(1.0, action=withdrawn.result), ["key"])
    with pytest.raises(BaseExceptionGroup) as caught:
        clock.advance(2.0)
    assert caught.group_contains(asyncio.CancelledError)
    assert looking.state is OperationState.FAILED
    assert clock.time() == 2.0


def test_an_observer_that_raises_is_among_the_errors() -> None:
    class Broken:
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            raise OSError("the disk is full")

        def key_checked(
            self, purgatory: str, key: Hashable, tried: int, completed: int, at: float
        ) -> None: ...

    clock = ManualClock()
    operation = clock.purgatory(observers=[Broken()]).try_complete_else_watch(Wait(1.0), ["key"])
    with pytest.raises(ExceptionGroup) as caught:
        clock.advance(1.0)
    assert [str(error) for error in caught.value.exceptions] == ["the disk is full"]
    assert operation.expired


def test_what_a_hook_parks_expires_in_the_same_step_if_it_is_due_by_then() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    log: list[tuple[str, float]] = []

    def park(depth: int) -> None:
        log.append((f"depth {depth}", clock.time()))
        if depth < 20:
            purgatory.try_complete_else_watch(Wait(0.5, action=lambda: park(depth + 1)), ["key"])

    park(0)
    clock.advance(5.0)
    assert log == [(f"depth {depth}", depth / 2) for depth in range(11)]
    assert purgatory.statistics().pending == 1


def test_a_hook_may_complete_operations_of_another_purgatory() -> None:
    clock = ManualClock()
    first, second = clock.purgatory("first"), clock.purgatory("second")
    other = second.try_complete_else_watch(Wait(10.0, "other"), ["key"])

    def complete_the_other() -> None:
        other.holds = True
        second.check_and_complete("key")

    first.try_complete_else_watch(Wait(1.0, action=complete_the_other), ["key"])
    clock.advance(1.0)
    assert other.state is OperationState.COMPLETED


def test_a_hook_cannot_advance_the_clock_that_called_it() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    impatient = purgatory.try_complete_else_watch(Wait(1.0, action=lambda: clock.advance(1.0)), ["key"])
    other = purgatory.try_complete_else_watch(Wait(1.5), ["key"])
    with pytest.raises(ExceptionGroup) as raised:
        clock.advance(2.0)
    assert raised.group_contains(RuntimeError, match="time passes already")
    assert impatient.state is OperationState.FAILED
    assert other.state is OperationState.EXPIRED
    assert clock.time() == 2.0


class Stop(BaseException):
    """Not an Exception, as what pytest.fail raises."""


def test_a_base_exception_of_a_hook_goes_up_at_once_and_the_others_expire_in_the_next_step() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    log: list[str] = []

    def stop() -> None:
        raise Stop

    stopping = purgatory.try_complete_else_watch(Wait(1.0, action=stop), ["key"])
    for name, timeout in (("same instant", 1.0), ("later", 3.0)):
        purgatory.try_complete_else_watch(Wait(timeout, name, log), ["key"])
    with pytest.raises(Stop):
        clock.advance(2.0)
    assert stopping.state is OperationState.FAILED
    clock.advance(10.0)
    assert log == ["same instant", "later"]
    purgatory.try_complete_else_watch(Wait(1.0, "new", log), ["key"])
    clock.advance(10.0)
    assert log == ["same instant", "later", "new"]


def test_a_signal_from_a_thread_is_heard_at_the_next_step() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    operation = purgatory.try_complete_else_watch(Wait(1.0), ["key"])
    operation.holds = True
    thread = threading.Thread(target=purgatory.check_and_complete_threadsafe, args=["key"])
    thread.start()
    thread.join()
    assert not operation.done
    clock.advance(0)
    assert operation.state is OperationState.COMPLETED


async def test_an_operation_of_a_clock_moved_by_hand_can_be_awaited() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()

    async def wait() -> str:
        return await purgatory.try_complete_else_watch(Wait(60.0), ["key"])

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    assert purgatory.statistics().pending == 1
    clock.advance(60.0)
    assert await waiting == "wait"


async def test_closing_one_of_its_purgatories_expires_what_is_pending_and_leaves_the_others() -> None:
    clock = ManualClock()
    closed, other = clock.purgatory("closed"), clock.purgatory("other")
    expired = closed.try_complete_else_watch(Wait(60.0), ["key"])
    stays = other.try_complete_else_watch(Wait(60.0), ["key"])
    await closed.aclose()
    assert expired.expired
    with pytest.raises(PurgatoryClosed):
        closed.try_complete_else_watch(Wait(60.0), ["key"])
    clock.advance(59.0)
    assert not stays.done
    clock.advance(1.0)
    assert stays.expired
    assert closed.statistics().wakeups == 0


def test_what_is_called_soon_runs_at_the_next_step_before_time_passes_and_so_does_what_that_calls() -> None:
    clock = ManualClock()
    log: list[tuple[str, float]] = []

    def first() -> None:
        log.append(("first", clock.time()))
        clock.call_soon(log.append, ("second", clock.time()))

    clock.call_soon(first)
    assert log == []
    clock.advance(1.0)
    assert log == [("first", 0.0), ("second", 0.0)]


def test_a_callback_gets_its_arguments_and_its_context_and_not_if_it_was_cancelled() -> None:
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


def test_callbacks_of_the_same_instant_run_in_the_order_in_which_they_were_asked_for() -> None:
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
def test_by_hand_as_on_a_loop_nothing_is_early_nor_a_tick_late(
    plan: list[tuple[float, float, float]],
) -> None:
    clock = ManualClock()
    late: list[tuple[float, float]] = []
    purgatories = {tick: clock.purgatory(tick=tick) for tick, _, _ in plan}

    def note(due: float, tick: float) -> None:
        late.append((clock.time() - due, tick))

    for tick, timeout, step in plan:
        due = clock.time() + timeout
        operation = Wait(timeout, action=partial(note, due, tick))
        purgatories[tick].try_complete_else_watch(operation, ["key"])
        clock.advance(step)
    clock.advance(30)
    assert len(late) == len(plan)
    for lateness, tick in late:
        assert -1e-9 < lateness < tick + 1e-9
