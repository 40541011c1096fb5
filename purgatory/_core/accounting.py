"""What has become of a purgatory's operations, and who is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Final, cast, final

from purgatory._core.operation import CANCELLED, COMPLETED, EXPIRED, Failure, Operation
from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer import Timer

if TYPE_CHECKING:
    from purgatory.delayed_operation import DelayedOperation
    from purgatory.observer import Observer

_logger: Final = logging.getLogger("purgatory")
# Quiet until somebody configures logging; what nobody would see goes to the loop's exception handler anyway.
_logger.addHandler(logging.NullHandler())


@final
class Accounting:
    """Counts the operations by how they ended, and tells observers and, of what failed, the loop and the log.

    Its log records have the fields `purgatory`, `kind` (the operation's class) and `keys`, of which the last
    two are None for what is no operation's fault. An operation that failed is an ERROR where nobody awaited
    it, and INFO where somebody did, who may well expect that.
    """

    __slots__ = (
        "_loop",
        "_name",
        "_observers",
        "_timer",
        "cancelled",
        "completed",
        "expired",
        "failed",
        "observed",
        "parked",
        "pending",
        "slices",
    )

    def __init__(self, name: str, timer: Timer, observers: tuple[Observer, ...]) -> None:
        self._name = name
        self._timer = timer
        self._observers = observers
        # Whether there is anybody to tell.
        self.observed = bool(observers)
        self._loop: asyncio.AbstractEventLoop | None = None
        # How many have ever been parked; an operation's own number is its place in that order.
        self.parked = 0
        self.pending = 0
        self.completed = 0
        self.expired = 0
        self.cancelled = 0
        self.failed = 0
        # How often sweeps and closing have paused.
        self.slices = 0

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def tell(self, observer: Observer) -> None:
        """Tell `observer`, too, from now on."""
        self._observers += (observer,)
        self.observed = True

    def finished(self, operation: Operation) -> None:
        """`operation` has ended."""
        state = operation._state
        if state is COMPLETED:
            self.completed += 1
        elif state is EXPIRED:
            self.expired += 1
        elif state is CANCELLED:
            self.cancelled += 1
        else:
            self.failed += 1
            failure = cast(Failure, operation._outcome)
            # What is no Exception goes up, and is seen there.
            if isinstance(failure.exception, Exception):
                # Two turns later. In the first the tasks just woken see it, or are cancelled before they
                # can, and so does a task that is made to await what try_complete_else_watch returns.
                cast(asyncio.AbstractEventLoop, self._loop).call_soon(self._report_soon, operation, failure)
        if self.observed:
            try:
                timing = operation._timing
            except AttributeError:
                # Offered before there was an observer: nobody knows when.
                return
            timing.ended = self._timer.clock()
            for observer in self._observers:
                try:
                    observer.operation_finished(self._name, cast("DelayedOperation[Any]", operation), timing)
                except Exception as error:
                    self.report(f"{safe_repr(observer)} raised an exception", error)

    def checked(self, key: Hashable, tried: int, completed: int) -> None:
        """A check of `key` is over."""
        at = self._timer.clock()
        for observer in self._observers:
            try:
                observer.key_checked(self._name, key, tried, completed, at)
            except Exception as error:
                self.report(f"{safe_repr(observer)} raised an exception", error)

    def report(self, message: str, error: BaseException, operation: Operation | None = None) -> None:
        """Hand what nobody else will see to the loop's exception handler, and to the log."""
        loop = cast(asyncio.AbstractEventLoop, self._loop)
        loop.call_exception_handler({"message": message, "exception": error})
        # Later, because a filter of the log may raise, and we may be in the middle of something.
        loop.call_soon(self._log, logging.ERROR, message, error, operation)

    def _report_soon(self, operation: Operation, failure: Failure) -> None:
        cast(asyncio.AbstractEventLoop, self._loop).call_soon(self._report_unseen, operation, failure)

    def _report_unseen(self, operation: Operation, failure: Failure) -> None:
        if failure.seen:
            self._log(logging.INFO, "an operation failed", failure.exception, operation)
        else:
            self.report(f"{safe_repr(operation)} failed and nobody awaited it", failure.exception, operation)

    def _log(self, level: int, message: str, error: BaseException, operation: Operation | None) -> None:
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
