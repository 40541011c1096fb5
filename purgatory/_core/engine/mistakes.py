"""Mistakes of the program that uses the library, and what debug mode does to find them."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from typing import Any, Final, final

from purgatory._core.engine.failures import FailureReporter
from purgatory._core.operation import PROTECTED_NAMES, Operation, end, settle
from purgatory._core.outcome import EXPIRED, FAILED, Failure
from purgatory._core.safe_repr import safe_repr

# The `slow_callback_duration` of asyncio's loops, for a clock that has none.
SLOW_SECONDS: Final = 0.1


def has_no_condition(operation: Operation) -> bool:
    """Whether nobody has overridden `try_complete`."""
    kind: Any = type(operation)
    base: Any = Operation
    return kind.try_complete is base.try_complete


def failed_by(operation: Operation, returned: Any) -> bool:
    """Fail an operation that waits although its `try_complete` has `returned` something true."""
    hook = f"{type(operation).__name__}.try_complete()"
    try:
        if not returned:
            return False
        if inspect.isawaitable(returned):
            if inspect.iscoroutine(returned):
                # Otherwise it would warn that nobody has awaited it.
                returned.close()
            raise TypeError(f"{hook} returned an awaitable, but the purgatory does not wait in a hook")
        raise RuntimeError(
            f"{hook} returned {safe_repr(returned)}, but did not complete the operation: "
            "when the condition holds, `return self.force_complete()`"
        )
    except Exception as error:
        return end(operation, FAILED, Failure(error))


@final
class Debugger:
    """Looks for mistakes that would cost too much to look for on every call. Debug mode has one."""

    __slots__ = ("_loop", "_reporter", "_thread_id")

    def __init__(self, loop: asyncio.AbstractEventLoop, reporter: FailureReporter) -> None:
        self._loop = loop
        self._reporter = reporter
        self._thread_id = threading.get_ident()

    def check_thread(self) -> None:
        """Raise RuntimeError in another thread than that of the loop, which would not notice the call."""
        if threading.get_ident() != self._thread_id:
            raise RuntimeError(
                "a purgatory belongs to the thread of its event loop: from another thread call "
                "check_and_complete_threadsafe(key), or loop.call_soon_threadsafe with any other method"
            )

    def check_fields(self, operation: Operation) -> None:
        """Raise TypeError for an operation that has put a value of its own under a name of the library."""
        names = sorted(PROTECTED_NAMES.intersection(getattr(operation, "__dict__", ())))
        if names:
            raise TypeError(
                f"{type(operation).__name__} sets self.{names[0]}, a name that belongs to the library: "
                "choose another name"
            )

    def trying(self, operation: Operation) -> Trying:
        """The operation, as it is tried here."""
        return Trying(self, operation)

    def settle(self, operation: Operation, closing: bool) -> BaseException | None:
        """Settle the operation, and report its hooks when they were slow."""
        expired = operation._state is EXPIRED
        hooks = "on_complete and on_expiration" if expired else "on_complete"
        started = time.monotonic()
        raised = settle(operation)
        self.look_at_duration(operation, hooks, started)
        if expired and not closing:
            self._look_at_keys(operation)
        return raised

    def look_at_duration(self, operation: Operation, hook: str, started: float) -> None:
        """Report a hook that was slow."""
        seconds = time.monotonic() - started
        if seconds >= getattr(self._loop, "slow_callback_duration", SLOW_SECONDS):
            kind = type(operation).__name__
            self._reporter.warn(f"{hook} of {kind} blocked the loop for {seconds:.3f} seconds", operation)

    def _look_at_keys(self, operation: Operation) -> None:
        """Report ("topic", 3) that was given as the keys and was meant as one key."""
        keys = operation._watched
        # A second try would mean that somebody has checked one of the keys.
        if {type(key) for key in keys} == {str, int} and operation._timing.tries == 1:
            self._reporter.warn(
                f"{safe_repr(operation)} expired, and nobody has checked one of its {len(keys)} keys: "
                "when the tuple is meant as one key, write [('topic', 3)] and not ('topic', 3)",
                operation,
            )


@final
class Trying:
    """A proxy that times `try_complete`, and reports a slow one."""

    __slots__ = ("_debugger", "_operation")

    def __init__(self, debugger: Debugger, operation: Operation) -> None:
        self._debugger = debugger
        self._operation = operation

    def try_complete(self) -> object:
        hooks: Any = self._operation
        started = time.monotonic()
        try:
            return hooks.try_complete()
        finally:
            self._debugger.look_at_duration(self._operation, "try_complete", started)
