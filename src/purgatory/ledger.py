"""What has become of a purgatory's operations, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, cast, final

from purgatory.operation import CANCELLED, COMPLETED, EXPIRED, Failure, Operation
from purgatory.timer import Timer

if TYPE_CHECKING:
    from purgatory.delayed_operation import DelayedOperation
    from purgatory.observer import Observer


@final
class Ledger:
    """Counts the operations by how they ended, and tells observers and, of what failed, the event loop."""

    __slots__ = (
        "_loop",
        "_name",
        "_observers",
        "_timer",
        "cancelled",
        "completed",
        "expired",
        "failed",
        "parked",
        "pending",
    )

    def __init__(self, name: str, timer: Timer, observers: tuple[Observer, ...]) -> None:
        self._name = name
        self._timer = timer
        self._observers = observers
        self._loop: asyncio.AbstractEventLoop | None = None
        # How many have ever been parked; an operation's own number is its place in that order.
        self.parked = 0
        self.pending = 0
        self.completed = 0
        self.expired = 0
        self.cancelled = 0
        self.failed = 0

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

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
        if self._observers:
            stay = operation._stay
            stay.ended = self._timer.clock()
            for observer in self._observers:
                try:
                    observer.operation_finished(self._name, cast("DelayedOperation[Any]", operation), stay)
                except Exception as error:
                    self.report(f"{observer!r} raised an exception", error)

    def checked(self, key: Hashable, tried: int, completed: int) -> None:
        """A check of `key` is over."""
        at = self._timer.clock()
        for observer in self._observers:
            try:
                observer.key_checked(self._name, key, tried, completed, at)
            except Exception as error:
                self.report(f"{observer!r} raised an exception", error)

    def report(self, message: str, error: BaseException) -> None:
        """Hand what nobody else will see to the loop's exception handler."""
        loop = cast(asyncio.AbstractEventLoop, self._loop)
        loop.call_exception_handler({"message": message, "exception": error})

    def _report_soon(self, operation: Operation, failure: Failure) -> None:
        cast(asyncio.AbstractEventLoop, self._loop).call_soon(self._report_unseen, operation, failure)

    def _report_unseen(self, operation: Operation, failure: Failure) -> None:
        if not failure.seen:
            self.report(f"{operation!r} failed and nobody awaited it", failure.exception)
