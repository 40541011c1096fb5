"""What debug mode finds."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, final

from purgatory._core.operation import PROTECTED_NAMES, Operation, settle, tried
from purgatory._core.outcome import EXPIRED
from purgatory._core.reports import Reporter
from purgatory.errors import safe_repr

# The `slow_callback_duration` of asyncio's loops, for a clock that has none.
SLOW_SECONDS: Final = 0.1


@final
class Debugger:
    """Looks for mistakes that would cost too much to look for on every call. Debug mode has one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, reporter: Reporter) -> None:
        self._loop = loop
        self._reporter = reporter
        # The operation that is tried once more at its expiry, and whether its condition holds.
        self._expiring: Operation | None = None
        self._holds = False
        # Operations that expired although their condition held.
        self.missed = 0

    def check_fields(self, operation: Operation) -> None:
        """Raise TypeError for an operation that has put a value of its own under a name of the library."""
        names = sorted(PROTECTED_NAMES.intersection(getattr(operation, "__dict__", ())))
        if names:
            raise TypeError(
                f"{type(operation).__name__} sets self.{names[0]}, a name that belongs to the library: "
                "choose another name"
            )

    def try_complete(self, operation: Operation) -> object:
        """Try the operation, and report its `try_complete` when it was slow."""
        hooks: Any = operation
        started = time.monotonic()
        try:
            return hooks.try_complete()
        finally:
            self._look_at_duration(operation, "try_complete", started)

    def settle(self, operation: Operation, closing: bool) -> BaseException | None:
        """Settle the operation, and report its hooks when they were slow."""
        expired = operation._state is EXPIRED
        try:
            if expired and not closing and operation._timeout > 0:
                self._look_once_more(operation)
        finally:
            hooks = "on_complete and on_expiration" if expired else "on_complete"
            started = time.monotonic()
            raised = settle(operation)
            self._look_at_duration(operation, hooks, started)
        if expired and not closing:
            self._look_at_keys(operation)
        return raised

    def would_complete(self, operation: Operation) -> None:
        """The condition of an operation that has ended holds."""
        self._holds = self._holds or operation is self._expiring

    def _look_once_more(self, operation: Operation) -> None:
        """Report an operation that expires although its condition holds."""
        hooks: Any = operation
        self._expiring, self._holds = operation, False
        try:
            hooks.try_complete()
        except (Exception, asyncio.CancelledError) as error:
            self._reporter.report(f"{safe_repr(operation)} raised when it was tried at its expiry", error)
        finally:
            self._expiring = None
        if self._holds:
            self.missed += 1
            keys = ", ".join(map(safe_repr, operation.keys))
            self._reporter.warn(
                f"{safe_repr(operation)} expired, but its condition holds: after the change nobody checked "
                f"{keys} ({tried(operation)})",
                operation,
            )

    def _look_at_duration(self, operation: Operation, hook: str, started: float) -> None:
        """Report a hook that was slow."""
        seconds = time.monotonic() - started
        if seconds >= getattr(self._loop, "slow_callback_duration", SLOW_SECONDS):
            kind = type(operation).__name__
            self._reporter.warn(f"{hook} of {kind} blocked the loop for {seconds:.3f} seconds", operation)

    def _look_at_keys(self, operation: Operation) -> None:
        """Report ("topic", 3) that was given as the keys and was meant as one key."""
        keys = operation._watched
        # A second try would mean that somebody has checked one of the keys.
        if {type(key) for key in keys} == {str, int} and operation._tries == 1:
            self._reporter.warn(
                f"{safe_repr(operation)} expired, and nobody has checked one of its {len(keys)} keys: "
                "when the tuple is meant as one key, write [('topic', 3)] and not ('topic', 3)",
                operation,
            )
