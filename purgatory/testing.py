"""For tests of code that waits: time that passes at once, and time moved by hand. No sleeping, no flaking.

With pytest-asyncio, load the plugin `purgatory.pytest_plugin` and ask for its fixture `virtual_time`; without
it, run the test on a `VirtualTimeLoop`, say by ``asyncio.Runner(loop_factory=VirtualTimeLoop)``. Code that
needs no event loop is tested with the purgatories of a `ManualClock`.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import selectors
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, cast

from purgatory._core.timer import DEFAULT_WHEEL_SIZE
from purgatory.errors import PurgatoryError
from purgatory.observer import Observer
from purgatory.purgatory import Purgatory

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class WouldWaitForever(PurgatoryError):
    """Raised when a `VirtualTimeLoop` has nothing left to run and no timer left to wait for."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer as soon as there is nothing else to do.

    An hour of timeouts passes in milliseconds, always in the same order. Time starts at 0 and stands still
    while code runs, in the loop or in `run_in_executor`, whose threads are waited for in real time. When
    nothing is left to wait for, `WouldWaitForever` names the tasks that wait nevertheless, at once.

    Sockets and pipes are served, but time does not wait for them: talk to other processes on a real loop.

    (looptime, made for the same end, lets its time run for the test function alone: a purgatory opened by
    a fixture would see the time jump back. And it meets a hang with a limit in real time.)
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._threads = 0
        super().__init__(JumpingSelector(self))

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def idle_for(self) -> float | None:
        """The seconds until the next timer rings; None when there is none, or it never will."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]  # BaseEventLoop's
        if not timers or timers[0].when() == math.inf:
            return None
        return timers[0].when() - self._now

    def jump(self, seconds: float | None) -> bool:
        """Nothing can run for so many seconds, or ever: let them pass. False when a thread will see to it."""
        if self._threads:
            return False
        if seconds is None:
            raise WouldWaitForever(_where_they_wait(self))
        self._now += seconds
        # A timer rings when it is due before now and this; after some months the usual 1e-9 adds nothing.
        self._clock_resolution = max(1e-9, math.ulp(self._now))
        # The sum may miss the timer by a rounding error, and it would ring that much too early or too late.
        short_of_it = self.idle_for()
        if short_of_it is not None and abs(short_of_it) <= self._clock_resolution:
            self._now += short_of_it
        return True

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_is_done)
        return future

    def _thread_is_done(self, _: asyncio.Future[Any]) -> None:
        self._threads -= 1

    async def shutdown_default_executor(self, *timeout: Any) -> None:
        self._threads += 1
        try:
            await super().shutdown_default_executor(*timeout)
        finally:
            self._threads -= 1


class JumpingSelector(selectors.DefaultSelector):
    """Where an event loop would sleep, this lets the virtual time pass instead."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        # Not for `timeout`, which is a day at most.
        if ready or timeout == 0 or self._loop.jump(self._loop.idle_for()):
            return ready
        return super().select(None)


def _where_they_wait(loop: asyncio.AbstractEventLoop) -> str:
    lines = ["nothing is left to run, and no timer to wait for; these tasks would wait for ever:"]
    for task in sorted(asyncio.all_tasks(loop), key=asyncio.Task.get_name):
        for frame in task.get_stack(limit=1):
            code = frame.f_code
            lines.append(f"  {task.get_name()}: {code.co_filename}:{frame.f_lineno} in {code.co_name}")
    return "\n".join(lines)


class ManualClock:
    """Time that stands still until `advance` moves it, for purgatories without an event loop.

    To its purgatories it is the loop: they take the time from it and arm their timers on it, over the same
    wheel and by the same rules as ever. What else a loop can do, it cannot.
    """

    def __init__(self) -> None:
        self._now = 0.0
        # What the steps add up to, in whole nanoseconds, so that ten of 0.1 make 1.0.
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
        """An open purgatory (see its class for the options) on this clock."""
        purgatory = Purgatory(
            name, tick=tick, wheel_size=wheel_size, max_pending=max_pending, observers=observers
        )
        purgatory.open_on(self._as_loop)
        self._purgatories.append(purgatory)
        return purgatory

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass, expiring what is due on the way, each at its time.

        Raises ValueError for a negative number, RuntimeError within a hook, and an ExceptionGroup of what a
        loop's exception handler would have got: hooks that failed with nobody awaiting the operation,
        observers that raised.
        """
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} seconds")
        if self._advancing:
            raise RuntimeError("time passes already: a hook cannot advance the clock that called it")
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
        """Have it called at the next `advance`."""
        handle = asyncio.Handle(callback, args, self._as_loop, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._errors.append(context["exception"])

    def get_debug(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Part of what a TimerHandle expects of its loop; `advance` leaves out the cancelled ones."""

    @property
    def _as_loop(self) -> asyncio.AbstractEventLoop:
        return cast(asyncio.AbstractEventLoop, self)

    def _run_ready(self) -> None:
        while self._ready:
            ready, self._ready = self._ready, []
            for handle in ready:
                if not handle.cancelled():
                    handle._run()
