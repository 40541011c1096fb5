"""Test code that waits, without sleeping: an event loop with virtual time, and a clock that tests advance.

With pytest-asyncio, load the plugin `purgatory.pytest_plugin` and request its fixture `virtual_time`. Without
it, run the test on a `VirtualTimeLoop`, for instance by ``asyncio.Runner(loop_factory=VirtualTimeLoop)``. For
code that needs no event loop, use the purgatories of a `ManualClock`. For relays without a server, use an
`InProcessBroker`.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import math
import os
import selectors
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextvars import Context
from types import FrameType
from typing import Any, Final, TypeVar, TypeVarTuple, cast

from purgatory._conditions import PredicateOperation
from purgatory._core.timer import DEFAULT_WHEEL_SIZE
from purgatory.async_delayed_operation import AsyncDelayedOperation
from purgatory.delayed_operation import DelayedOperation
from purgatory.errors import PurgatoryError
from purgatory.observer import Observer
from purgatory.purgatory import Purgatory
from purgatory.reaper import LIFECYCLES
from purgatory.relay.transports.in_process import InProcessBroker, InProcessTransport

__all__ = ["InProcessBroker", "InProcessTransport", "ManualClock", "VirtualTimeLoop", "WouldWaitForever"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class WouldWaitForever(PurgatoryError):
    """Raised when a `VirtualTimeLoop` has nothing left to run and no timer left to wait for."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer as soon as there is nothing else to do.

    An hour of timeouts passes in milliseconds, always in the same order. Time starts at 0. It stands still
    while code runs, in the loop or in a thread of `run_in_executor`, for which the loop waits in real time.
    When no timer is left, a test that would hang fails at once: `WouldWaitForever` names the tasks that wait,
    and the line of your code in which each waits.

    The loop serves sockets and pipes, but time does not wait for them. Use a real loop to talk to other
    processes, or a thread: ``await asyncio.to_thread(subprocess.run, command)``.

    (looptime has the same purpose, but its time runs for the test function alone: a purgatory opened by a
    fixture would see the time jump back. And it ends a test that hangs by a limit in real time.)
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._threads = 0
        super().__init__(JumpingSelector(self))

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def idle_for(self) -> float | None:
        """The seconds until the next timer is due; None when no timer will ever be due."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]  # BaseEventLoop's
        if not timers or timers[0].when() == math.inf:
            return None
        return timers[0].when() - self._now

    def jump(self, seconds: float | None) -> bool:
        """Let `seconds` pass, in which no code can run. False when time stands still for a thread at work.

        Raises WouldWaitForever for None, which means that no timer will ever be due.
        """
        if self._threads:
            return False
        if seconds is None:
            raise WouldWaitForever(_describe_waiting_tasks(self))
        self._now += seconds
        # The loop runs timers that are due before now plus this. After some months, adding the usual 1e-9
        # changes nothing.
        self._clock_resolution = max(1e-9, math.ulp(self._now))
        # The sum may miss the timer's time by a rounding error, by which the timer would run early or late.
        rounding_error = self.idle_for()
        if rounding_error is not None and abs(rounding_error) <= self._clock_resolution:
            self._now += rounding_error
        return True

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: asyncio.Future[Any]) -> None:
        self._threads -= 1

    async def shutdown_default_executor(self, *timeout: Any) -> None:
        self._threads += 1
        try:
            await super().shutdown_default_executor(*timeout)
        finally:
            self._threads -= 1


class JumpingSelector(selectors.DefaultSelector):
    """Lets virtual time pass where an event loop would sleep."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        # The loop limits `timeout` to a day, so it does not tell how long to wait.
        if ready or timeout == 0 or self._loop.jump(self._loop.idle_for()):
            return ready
        return super().select(None)


# A report lists so many of the operations that are pending in a purgatory.
MOST_LISTED: Final = 10


def _describe_waiting_tasks(loop: asyncio.AbstractEventLoop) -> str:
    lines = ["nothing is left to run and no timer is armed; these tasks would wait forever:"]
    reapers = {lifecycle.reaper for lifecycle in LIFECYCLES}
    for task in sorted(asyncio.all_tasks(loop) - reapers, key=asyncio.Task.get_name):
        frames = list(_suspended_frames(task.get_coro()))
        # The innermost line of the user's own code, since a line of a library says little about the test.
        own = [frame for frame in frames if not _is_library(frame.f_code.co_filename)][-1:]
        operations = [frame.f_locals["self"] for frame in frames if frame.f_code in _AWAITING]
        for frame in own or frames[:1]:
            code, line = frame.f_code, frame.f_lineno
            if not own and operations and isinstance(operations[0], PredicateOperation):
                # A task of wait_until() itself. The predicate is the user's.
                code = getattr(operations[0].predicate, "__code__", code)
                line = code.co_firstlineno if code is not frame.f_code else line
            lines.append(f"  {task.get_name()}: {code.co_filename}:{line} in {code.co_name}")
        lines += [f"    awaits {operation!r}" for operation in operations]
    for lifecycle in LIFECYCLES:
        engine = lifecycle.engine
        if engine.loop is loop and engine.pending:
            pending = "1 operation is" if engine.pending == 1 else f"{engine.pending} operations are"
            lines.append(f"{pending} pending in purgatory {engine.name!r}:")
            lines += [f"  {operation!r}" for operation in engine.watchers.operations()[:MOST_LISTED]]
    return "\n".join(lines)


# The code in which a task awaits an operation.
_AWAITING: Final = (DelayedOperation.__await__.__code__, AsyncDelayedOperation.__await__.__code__)


def _suspended_frames(awaited: Any) -> Iterator[FrameType]:
    """The frames of a coroutine and of all that it awaits in turn, from the outermost to the innermost."""
    # A pending task's coroutines all have a frame.
    frame: Any
    while inspect.iscoroutine(awaited) or inspect.isgenerator(awaited):
        if inspect.iscoroutine(awaited):
            frame, awaited = awaited.cr_frame, awaited.cr_await
        else:
            frame, awaited = awaited.gi_frame, awaited.gi_yieldfrom
        yield frame


# The standard library, the installed packages, and this package.
_LIBRARIES: Final = (*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), os.path.dirname(__file__))


def _is_library(file: str) -> bool:
    return file.startswith(tuple(f"{directory}{os.sep}" for directory in _LIBRARIES))


class ManualClock:
    """A clock that stands still until `advance` moves it, for purgatories without an event loop.

    Its purgatories use it as their loop: they read the time from it and arm their timers on it. Timing wheel
    and rules are the same as on a real loop. The clock has no other methods of a loop.
    """

    def __init__(self) -> None:
        self._now = 0.0
        # The sum of the steps in whole nanoseconds, so that ten steps of 0.1 s make 1.0 s.
        self._nanoseconds = 0
        self._advancing = False
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._armed = 0
        self._ready: list[asyncio.Handle] = []
        self._purgatories: list[Purgatory] = []
        self._errors: list[BaseException] = []

    def purgatory(
        self,
        name: str = "purgatory",
        *,
        tick: float = 0.001,
        wheel_size: int = DEFAULT_WHEEL_SIZE,
        max_pending: int | None = None,
        observers: Iterable[Observer] = (),
    ) -> Purgatory:
        """An open purgatory on this clock. `Purgatory` describes the options."""
        purgatory = Purgatory(
            name, tick=tick, wheel_size=wheel_size, max_pending=max_pending, observers=observers
        )
        purgatory._open_on(self._as_loop)
        self._purgatories.append(purgatory)
        return purgatory

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass, and expire each operation that becomes due at its own time.

        Raises ValueError for a negative number, and RuntimeError when a hook calls it. Raises an
        ExceptionGroup of the exceptions that a loop's exception handler would have received: from hooks
        whose operation nobody awaits, and from observers.
        """
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} seconds: advance by zero or more")
        if self._advancing:
            raise RuntimeError("the clock is being advanced: a hook that it runs cannot advance it, too")
        self._nanoseconds += round(seconds * 1e9)
        self._advancing = True
        try:
            self._run_ready()
            while self._timers and round(self._timers[0][0] * 1e9) <= self._nanoseconds:
                when, _, handle = heapq.heappop(self._timers)
                if not handle.cancelled():
                    self._now = max(self._now, when)
                    handle._run()
                    for purgatory in self._purgatories:
                        purgatory.timer.drive()
                    self._run_ready()
        finally:
            self._advancing = False
        self._now = max(self._now, self._nanoseconds / 1e9)
        if self._errors:
            errors, self._errors = self._errors, []
            raise BaseExceptionGroup("raised while the clock was advanced, or before", errors)

    def time(self) -> float:
        """Seconds since the clock was made."""
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self._as_loop, context)
        self._armed += 1
        heapq.heappush(self._timers, (when, self._armed, handle))
        return handle

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Call `callback` at the next `advance`."""
        handle = asyncio.Handle(callback, args, self._as_loop, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._errors.append(context["exception"])

    def get_debug(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A TimerHandle calls it on its loop. There is nothing to do: `advance` skips cancelled handles."""

    @property
    def _as_loop(self) -> asyncio.AbstractEventLoop:
        return cast(asyncio.AbstractEventLoop, self)

    def _run_ready(self) -> None:
        while self._ready:
            ready, self._ready = self._ready, []
            for handle in ready:
                if not handle.cancelled():
                    handle._run()
