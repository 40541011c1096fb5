"""A fault that strikes once, at a call of user code or of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVarTuple

from purgatory import Timer
from purgatory.testing import VirtualTimeLoop

Ts = TypeVarTuple("Ts")


class Injected(Exception):
    """An exception that nothing raises but a fault."""


class Fault:
    """Raises `error` at the point with the number `at` of those that are reached in `strike`."""

    def __init__(self, error: BaseException, at: int) -> None:
        self.error = error
        self.at = at
        self.reached = 0
        self.armed = False
        # Whether the point exists: an act that never gets to it shows that there are no more.
        self.struck = False
        # Whether a method of a key raised. The entry of that key may stay in the table.
        self.at_a_key = False

    def reach(self, *, at_a_key: bool = False) -> None:
        """User code and the loop call this at each of their points."""
        if self.armed:
            self.reached += 1
            if self.reached == self.at:
                self.armed = False
                self.struck = True
                self.at_a_key = at_a_key
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
