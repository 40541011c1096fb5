"""Faults that strike once: at a call, at an allocation, or near the limit of the stack."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVarTuple

import purgatory
from purgatory import Timer
from purgatory.testing import VirtualTimeLoop

try:
    testcapi: Any = importlib.import_module("_testcapi")
except ImportError:
    # Not every interpreter comes with the modules of CPython's own tests.
    testcapi = None

Ts = TypeVarTuple("Ts")

PACKAGE = os.path.dirname(purgatory.__file__) + os.sep
CORE = os.path.join(PACKAGE, "_core") + os.sep


# These allocate nothing and call nobody.
SAFE = (isinstance, len)


class Injected(Exception):
    """An exception that nothing raises but a fault."""


class Fault:
    """Raises `error` at the point with the number `at` of those that are reached in `strike`."""

    # Whether it strikes only once.
    once = True

    def __init__(self, error: BaseException, at: int) -> None:
        self.error = error
        self.at = at
        self.reached = 0
        self.armed = False
        # Whether the point exists: an act that never gets to it shows that there are no more.
        self.struck = False
        # Where that point is, where that is known.
        self.where = ""

    def reach(self) -> None:
        """User code and the loop call this at each of their points."""
        if self.armed:
            self.reached += 1
            if self.reached == self.at:
                self.armed = False
                self.struck = True
                raise self.error

    def strike(self, act: Callable[[], object]) -> None:
        self.armed = True
        try:
            act()
        finally:
            self.armed = False

    def caused(self, error: BaseException | None) -> bool:
        """Whether `error` is this fault's, or comes of it."""
        return error is not None and (error is self.error or self.caused(error.__cause__))


class TracedFault(Fault):
    """Strikes at a call that the interpreted core makes: of a builtin, or of a function of somebody else."""

    def reach(self) -> None:
        """The tracer finds the calls of user code and of the loop, too."""

    def strike(self, act: Callable[[], object]) -> None:
        self.armed = True
        sys.setprofile(self._trace)
        try:
            act()
        finally:
            sys.setprofile(None)

    def _trace(self, frame: FrameType, event: str, called: Any) -> None:
        self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} {event} {called!r}"
        if event == "c_call":
            if frame.f_code.co_filename.startswith(CORE) and called not in SAFE:
                super().reach()
        elif event == "call" and frame.f_back is not None:
            caller, callee = frame.f_back.f_code.co_filename, frame.f_code.co_filename
            if (
                caller.startswith(PACKAGE)
                and not callee.startswith(PACKAGE)
                and frame.f_code not in (asyncio.Event.set.__code__, FaultyLoop.call_soon.__code__)
            ):
                super().reach()


class MemoryFault(Fault):
    """Makes one allocation fail: the one with the number `at`."""

    def __init__(self, at: int) -> None:
        super().__init__(MemoryError(), at)
        # Many more than the number by which the count of one and the same act varies.
        self._spare: list[object] = [None] * 200
        # More than the interpreter keeps for reuse.
        self._floats: list[float] = [0.0] * 200

    def reach(self) -> None:
        """No call fails, only an allocation."""

    def strike(self, act: Callable[[], object]) -> None:
        self.struck = True
        # A float that the interpreter has kept for reuse needs no memory, and the act may need nothing else.
        for index in range(len(self._floats)):
            self._floats[index] += 0.5
        testcapi.set_nomemory(self.at, self.at + 1)
        try:
            try:
                act()
            finally:
                try:
                    self._allocate()
                except MemoryError:
                    # The act was over before it came to the allocation that fails.
                    self.struck = False
        finally:
            testcapi.remove_mem_hooks()

    def _allocate(self) -> None:
        for index in range(200):
            self._spare[index] = object()

    def caused(self, error: BaseException | None) -> bool:
        # CPython raises SystemError where it has no memory for a traceback.
        return error is not None and (
            isinstance(error, (MemoryError, SystemError)) or self.caused(error.__cause__)
        )


class DepthFault(Fault):
    """Acts with room for `at` more frames on the stack."""

    once = False

    def __init__(self, at: int) -> None:
        super().__init__(RecursionError(), at)

    def reach(self) -> None:
        """No call fails, as long as there is room for it."""

    def strike(self, act: Callable[[], object]) -> None:
        depth = 0
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            depth += 1
            frame = frame.f_back
        # To go down to the usual limit would put a thousand frames into each traceback.
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(depth + self.at)
        try:
            act()
        finally:
            sys.setrecursionlimit(usual)

    def caused(self, error: BaseException | None) -> bool:
        # The core has a MemoryError of its own for what it cannot keep.
        return error is not None and (
            isinstance(error, (RecursionError, MemoryError)) or self.caused(error.__cause__)
        )


def lost(task: asyncio.Task[Any]) -> bool:
    """Whether `task` waits for a future that is done. It waits forever then.

    When `call_soon` raises in the middle of Future.set_result, asyncio loses the wake-up. Nobody can repeat
    it. That is so for all of asyncio's futures.
    """
    future: asyncio.Future[Any] | None = task._fut_waiter  # type: ignore[attr-defined]
    return future is not None and future.done()


class FaultyLoop(VirtualTimeLoop):
    """A loop whose methods are points of a fault. It counts its turns and keeps the reports it gets."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self.turns = 0
        self.reports: list[dict[str, Any]] = []
        # Whether the wake-ups of tasks are points, too. Not while tasks are part of the act.
        self.loses_wakeups = False
        super().__init__()

    def pass_time(self, seconds: float) -> None:
        """Let time pass while code runs."""
        self._now += seconds

    def _run_once(self) -> None:
        self.turns += 1
        super()._run_once()  # type: ignore[misc]  # BaseEventLoop's

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, **context: Any) -> Any:
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, asyncio.Task):
            if self.loses_wakeups:
                self._fault.reach()
        elif type(owner).__module__.startswith("purgatory._core"):
            self._fault.reach()
        return super().call_soon(callback, *args, **context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, **context: Any
    ) -> asyncio.TimerHandle:
        if isinstance(getattr(callback, "__self__", None), Timer):
            self._fault.reach()
        return super().call_at(when, callback, *args, **context)

    def create_future(self) -> asyncio.Future[Any]:
        self._fault.reach()
        return super().create_future()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._fault.reach()
        self.reports.append(context)
