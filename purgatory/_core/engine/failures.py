"""Reports of failures that nobody else sees, to the loop's exception handler and to the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast, final

from purgatory._core.operation import Operation, end
from purgatory._core.outcome import FAILED, Failure
from purgatory._core.safe_repr import safe_repr

_logger: Final = logging.getLogger("purgatory")
# Quiet until the program configures logging. The loop's exception handler gets what nobody awaited anyway.
_logger.addHandler(logging.NullHandler())


@final
class FailureReporter:
    """Reports failures of one purgatory.

    The log records have the fields `purgatory`, `kind` (the operation's class) and `keys`. The last two are
    None where no operation is at fault. A failed operation is an ERROR when nobody awaited it, and INFO when
    someone did, because that caller may expect the failure.
    """

    __slots__ = ("_loop", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def operation_failed(self, operation: Operation) -> None:
        """Log the failure of `operation`, and report it where nobody has awaited it two turns later."""
        failure = cast(Failure, operation._outcome)
        # A BaseException that is not an Exception goes up to the caller, who sees it.
        if isinstance(failure.exception, Exception):
            # In the first turn the tasks that were just woken see it, or are cancelled before they can. So
            # does a task that is created to await the return value of try_complete_else_watch.
            self._soon(self._report_soon, operation, failure)

    def report(self, message: str, error: BaseException, operation: Operation | None = None) -> None:
        """Hand a failure that nobody else sees to the loop's exception handler, and to the log."""
        loop = cast(asyncio.AbstractEventLoop, self._loop)
        loop.call_exception_handler({"message": message, "exception": error})
        # Later, because a filter of the log may raise, and the engine may be in the middle of its work.
        self._soon(self._log, logging.ERROR, message, error, operation)

    def try_failed(self, operation: Operation, error: BaseException) -> bool:
        """`try_complete` raised, which ends this operation only. Returns whether `error` has to go up."""
        if not end(operation, FAILED, Failure(error)) and isinstance(error, Exception):
            self.report(f"{safe_repr(operation)} was done when its try_complete() raised", error)
        return not isinstance(error, Exception)

    def warn(self, message: str, operation: Operation) -> None:
        """Log what debug mode has found."""
        self._soon(self._log, logging.WARNING, message, None, operation)

    def _soon(self, callback: Callable[..., None], *arguments: object) -> None:
        try:
            cast(asyncio.AbstractEventLoop, self._loop).call_soon(callback, *arguments)
        except RecursionError:
            raise
        except RuntimeError:
            # The loop is closed. There is no later turn.
            callback(*arguments)

    def _report_soon(self, operation: Operation, failure: Failure) -> None:
        self._soon(self._report_unseen, operation, failure)

    def _report_unseen(self, operation: Operation, failure: Failure) -> None:
        if failure.seen:
            self._log(logging.INFO, "an operation failed", failure.exception, operation)
        else:
            self.report(f"{safe_repr(operation)} failed and nobody awaited it", failure.exception, operation)

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
