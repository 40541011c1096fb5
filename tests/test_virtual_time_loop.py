"""The virtual-time loop, on which users build their own tests."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory import OperationState, Purgatory
from purgatory.testing import VirtualTimeLoop
from tests.operations import Gate

T = TypeVar("T")


def on_virtual_time(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main` on a loop of its own, and return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


@pytest.mark.timeout(20)
async def test_an_hour_of_timeouts_passes_at_once(virtual_time: VirtualTimeLoop) -> None:
    assert virtual_time.time() == 0.0
    for _ in range(60):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
    assert virtual_time.time() == 3600.0


@pytest.mark.timeout(20)
def test_a_jump_over_ages_is_as_fast_as_a_short_one() -> None:
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


async def test_timers_run_in_the_order_of_their_times(virtual_time: VirtualTimeLoop) -> None:
    ran: list[tuple[str, float]] = []

    def run(name: str) -> None:
        ran.append((name, virtual_time.time()))

    for name, delay in (("c", 3.0), ("a", 1.0), ("d", 86_400.0), ("b", 2.0)):
        virtual_time.call_later(delay, run, name)
    virtual_time.call_later(1.5, lambda: virtual_time.call_later(1.0, run, "new"))
    await asyncio.sleep(100_000)
    assert ran == [("a", 1.0), ("b", 2.0), ("new", 2.5), ("c", 3.0), ("d", 86_400.0)]


def test_the_same_code_always_runs_in_the_same_order() -> None:
    async def main() -> list[tuple[int, float]]:
        steps = []

        async def walk(number: int) -> None:
            for step in range(1, 8):
                await asyncio.sleep(number * step / 7)
                steps.append((number, asyncio.get_running_loop().time()))

        await asyncio.gather(*[walk(number) for number in range(1, 8)])
        return steps

    assert on_virtual_time(main) == on_virtual_time(main)


@given(delays=st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=10))
def test_every_sleep_ends_exactly_at_its_time(delays: list[float]) -> None:
    async def main() -> list[tuple[float, float]]:
        loop = asyncio.get_running_loop()
        sleeps = []
        for delay in delays:
            due = loop.time() + delay
            await asyncio.sleep(delay)
            sleeps.append((due, loop.time()))
        return sleeps

    for due, ended in on_virtual_time(main):
        assert ended == due


@pytest.mark.parametrize(
    "times",
    [
        # The first time plus the difference is a rounding error below, or above, the second time.
        pytest.param([307518219.93430525, 979886277.5249707], id="short"),
        pytest.param([326465781.13202447, 991781570.3566276], id="beyond"),
    ],
)
async def test_after_years_timers_still_run_at_exactly_their_times(
    times: list[float], virtual_time: VirtualTimeLoop
) -> None:
    ran: list[float] = []
    for when in times:
        virtual_time.call_at(when, lambda: ran.append(virtual_time.time()))
    await asyncio.sleep(1e9)
    assert ran == times


async def test_a_jump_that_ends_before_the_next_timer_does_not_run_it(virtual_time: VirtualTimeLoop) -> None:
    ran: list[float] = []
    virtual_time.call_at(100.0, lambda: ran.append(virtual_time.time()))
    assert virtual_time.jump(99.0) is True
    assert virtual_time.time() == 99.0
    await asyncio.sleep(0)
    assert ran == []
    await asyncio.sleep(1.0)
    assert ran == [100.0]


async def test_virtual_time_stands_still_while_a_thread_works(virtual_time: VirtualTimeLoop) -> None:
    timer_ran = False
    times = []

    def run_timer() -> None:
        nonlocal timer_ran
        timer_ran = True

    def work() -> int:
        # Three calls from the thread to the loop, with an idle loop in between.
        for _ in range(3):
            seen = threading.Event()

            def note_time(seen: threading.Event = seen) -> None:
                times.append(virtual_time.time())
                seen.set()

            virtual_time.call_soon_threadsafe(note_time)
            assert seen.wait(30)
        return 42

    await asyncio.sleep(1.0)
    virtual_time.call_later(10.0, run_timer)
    assert await virtual_time.run_in_executor(None, work) == 42
    assert times == [1.0, 1.0, 1.0]
    assert not timer_ran
    await asyncio.sleep(20.0)
    assert timer_ran


async def test_a_timeout_around_a_thread_does_not_end_its_work(virtual_time: VirtualTimeLoop) -> None:
    command = [sys.executable, "-c", "print('done')"]
    async with asyncio.timeout(1e-9):
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["done"]
    assert virtual_time.time() == 0.0


async def test_a_timeout_around_a_subprocess_ends_at_once(virtual_time: VirtualTimeLoop) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3600):
            await process.wait()
    assert virtual_time.time() == 3600.0
    process.kill()
    # Time stands still for a thread, so the loop waits for the process in real time.
    ended = threading.Event()
    thread = virtual_time.run_in_executor(None, ended.wait, 30)
    await process.wait()
    ended.set()
    assert await thread


async def test_a_thread_can_check_a_key_on_virtual_time(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        operation = purgatory.try_complete_else_watch(Gate(3600.0), ["key"])
        operation.opened = True
        await asyncio.to_thread(purgatory.check_and_complete_threadsafe, "key")
        assert await operation == "gate"
    assert operation.state is OperationState.COMPLETED
    assert virtual_time.time() == 0.0


async def test_an_exception_of_a_thread_is_raised_and_time_goes_on(virtual_time: VirtualTimeLoop) -> None:
    def fail() -> None:
        raise LookupError("in a thread")

    with pytest.raises(LookupError, match="in a thread"):
        await virtual_time.run_in_executor(None, fail)
    await asyncio.sleep(5.0)
    assert virtual_time.time() == 5.0


async def test_a_refused_call_to_an_executor_does_not_stop_time(virtual_time: VirtualTimeLoop) -> None:
    await virtual_time.run_in_executor(None, int)
    await virtual_time.shutdown_default_executor()
    with pytest.raises(RuntimeError, match="shutdown"):
        virtual_time.run_in_executor(None, int)
    await asyncio.sleep(5.0)
    assert virtual_time.time() == 5.0


async def test_shutting_down_the_default_executor_waits_for_its_threads(
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
