"""What the log and the exception handler are told: failures, and the mistakes that debug mode finds."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, cast, final

from purgatory._core.operation import PROTECTED_NAMES, Operation, end, settle, tried
from purgatory._core.outcome import EXPIRED, FAILED, Failure, GivenFailure
from purgatory.errors import own_error, safe_repr

_logger: Final = logging.getLogger("purgatory")
# Quiet until the program configures logging. The loop's exception handler gets what nobody awaited anyway.
_logger.addHandler(logging.NullHandler())

# The `slow_callback_duration` of asyncio's loops, for a clock that has none.
SLOW_SECONDS: Final = 0.1


@final
class Reporter:
    """Reports failures of one purgatory.

    The log records have the fields `purgatory`, `kind` (the operation's class) and `keys`. The last two are
    None where no operation is at fault. A failed operation is an ERROR when nobody awaited it, and INFO when
    someone did, because that caller may expect the failure.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._warned_of_rounds = False

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def operation_failed(self, operation: Operation) -> None:
        """Log the failure of `operation`, and report it where nobody has awaited it two turns later.

        What `fail` was given is a result: it is reported when the operation is freed and nobody has seen it.
        """
        failure = cast(Failure, operation._outcome)
        if isinstance(failure, GivenFailure):
            failure.report = partial(self._freed_unseen, type(operation).__name__, operation.keys)
            if _logger.isEnabledFor(logging.INFO):
                self._soon(self._log, logging.INFO, "an operation failed", failure.exception, operation)
            return
        # A BaseException that is not an Exception goes up to the caller, who sees it.
        if isinstance(failure.exception, Exception):
            # In the first turn the tasks that were just woken see it, or are cancelled before they can. So
            # does a task that is created to await the return value of try_complete_else_watch.
            self._soon(self._soon, self._report_unseen, operation, failure)

    def report(self, message: str, error: BaseException, operation: Operation | None = None) -> None:
        """Hand a failure that nobody else sees to the loop's exception handler, and to the log."""
        loop = cast(asyncio.AbstractEventLoop, self._loop)
        loop.call_exception_handler({"message": message, "exception": error})
        # Later, because a filter of the log may raise, and the engine may be in the middle of its work.
        self._soon(self._log, logging.ERROR, message, error, operation)

    def try_failed(self, operation: Operation, error: BaseException) -> bool:
        """`try_complete` raised, which ends this operation only. Returns whether `error` has to go up."""
        own = own_error(error, f"{type(operation).__name__}.try_complete()")
        if not end(operation, FAILED, Failure(own)) and isinstance(own, Exception):
            self.report(f"{safe_repr(operation)} was done when its try_complete() raised", own)
        return not isinstance(own, Exception)

    def warn_of_rounds(self, key: Hashable, operation: Operation | None) -> None:
        """Log, once for a purgatory, that checks ask for checks and nothing ends."""
        if not self._warned_of_rounds:
            self._warned_of_rounds = True
            self.warn(
                f"{safe_repr(operation)} asks for a check of {safe_repr(key)} whenever it is tried, and "
                "nothing ends: a condition must not check a key whose check tries it again",
                operation,
            )

    def warn(self, message: str, operation: Operation | None = None) -> None:
        """Log what is probably a mistake."""
        self._soon(self._log, logging.WARNING, message, None, operation)

    def _soon(self, callback: Callable[..., None], *arguments: object) -> None:
        try:
            cast(asyncio.AbstractEventLoop, self._loop).call_soon(callback, *arguments)
        except RuntimeError:
            # The loop is closed. There is no later turn.
            callback(*arguments)

    def _report_unseen(self, operation: Operation, failure: Failure) -> None:
        if failure.seen:
            self._log(logging.INFO, "an operation failed", failure.exception, operation)
        else:
            self.report(f"{safe_repr(operation)} failed and nobody awaited it", failure.exception, operation)

    def _freed_unseen(self, kind: str, keys: tuple[Hashable, ...], error: BaseException) -> None:
        """Report what `fail` was given. A finalizer calls it, in any thread, in the middle of anything."""
        where = f" on {safe_repr(keys)}" if keys else ""
        message = f"{kind}{where} failed and nobody awaited it"
        loop = cast(asyncio.AbstractEventLoop, self._loop)
        try:
            loop.call_soon_threadsafe(self.report, message, error)
        except RuntimeError:
            # The loop is closed.
            self.report(message, error)

    def _log(
        self, level: int, message: str, error: BaseException | None, operation: Operation | None
    ) -> None:
        _logger.log(
            level,
            "purgatory %r: %s",
            self._name,
            message,
            exc_info=error,
            extra={
                "purgatory": self._name,
                "kind": None if operation is None else type(operation).__name__,
                "keys": None if operation is None else operation.keys,
            },
        )


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
