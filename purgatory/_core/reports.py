"""What an engine tells others: observers, the loop's exception handler and the log."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast, final

from purgatory._core.operation import Operation, end
from purgatory._core.outcome import FAILED, Failure, GivenFailure
from purgatory._core.timer import Timer
from purgatory.errors import own_error, safe_repr

if TYPE_CHECKING:
    from purgatory.delayed_operation import DelayedOperation
    from purgatory.observer import Observer

_logger: Final = logging.getLogger("purgatory")
# Quiet until the program configures logging. The loop's exception handler gets what nobody awaited anyway.
_logger.addHandler(logging.NullHandler())


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
class Observers:
    """The observers of one purgatory. What one of them raises keeps no other from being told."""

    def __init__(self, name: str, timer: Timer, reporter: Reporter, observers: tuple[Observer, ...]) -> None:
        self._name = name
        self._timer = timer
        self._reporter = reporter
        self.all = observers

    def ended(self, operation: Operation) -> None:
        """Tell them that `operation` has ended."""
        try:
            timing = operation._timing
        except AttributeError:
            # It was offered before the first observer came, so nobody noted when.
            return
        timing.ended = self._timer.clock()
        timing.tries = operation._tries
        raised: BaseException | None = None
        for observer in self.all:
            try:
                observer.operation_finished(self._name, cast("DelayedOperation[Any]", operation), timing)
            except BaseException as error:
                raised = self._failed(observer, error, raised)
        if raised is not None:
            raise raised

    def checked(self, key: Hashable, tried: int, completed: int) -> None:
        """Tell them that a check of `key` is over."""
        at = self._timer.clock()
        raised: BaseException | None = None
        for observer in self.all:
            try:
                observer.key_checked(self._name, key, tried, completed, at)
            except BaseException as error:
                raised = self._failed(observer, error, raised)
        if raised is not None:
            raise raised

    def _failed(
        self, observer: Observer, error: BaseException, raised: BaseException | None
    ) -> BaseException | None:
        """Report what an observer raised. Returns what goes up when all were told: the first interruption."""
        interruption = own_error(error, type(observer).__name__)
        if isinstance(interruption, Exception):
            try:
                self._reporter.report(f"{safe_repr(observer)} raised an exception", interruption)
            except BaseException as problem:
                interruption = problem
            else:
                return raised
        return interruption if raised is None else raised


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
    except (Exception, asyncio.CancelledError) as error:
        return end(operation, FAILED, Failure(own_error(error, hook)))
