"""Interrupts a task's wait as soon as an operation is done."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, cast, final

from purgatory._core.outcome import OperationState
from purgatory._core.waiting import abandon, claim, wake_when_done
from purgatory.delayed_operation import DelayedOperation
from purgatory.errors import safe_repr


@final
class Interruption:
    """``with Interruption(operation):`` ends when the pending `operation` is done, whatever the block awaits.

    So one task waits for two things, and the second wait needs no task of its own. Enter it once, in a task.
    When the operation is done, the task is cancelled, and the block's end catches this cancellation, as
    asyncio.timeout does. A cancellation by anybody else is raised as usual. When an exception leaves the
    block, the task abandons the operation. Otherwise it has claimed the result.

    If the operation fails, the task reads the operation's exception after the block. When another exception
    leaves the block, the loop's exception handler gets the operation's exception.
    """

    __slots__ = ("_cancelling", "_failure", "_operation", "_over", "_sent", "_task")

    def __init__(self, operation: DelayedOperation[Any]) -> None:
        self._operation = operation
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._cancelling = 0
        self._failure: BaseException | None = None
        self._sent = False
        self._over = False

    def __enter__(self) -> None:
        self._cancelling = self._task.cancelling()
        wake_when_done(self._operation, self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._over = True
        ended = self._sent and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError
        if ended or kind is None:
            claim(self._operation)
        else:
            abandon(self._operation, self)
        # A BaseException that is no Exception has been raised already, where the operation ended.
        if isinstance(self._failure, Exception) and error is not None and not ended:
            message = f"{safe_repr(self._operation)} failed and nobody awaited it"
            context = {"message": message, "exception": self._failure}
            self._task.get_loop().call_exception_handler(context)
        return ended

    # The methods of a future that the operation calls

    def cancelled(self) -> bool:
        """Whether somebody else has cancelled the task."""
        return self._task.cancelling() > self._cancelling + self._sent

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the task."""
        return self._task.get_loop()

    def done(self) -> bool:
        """Whether the block has been left."""
        return self._over

    def set_result(self, _: None) -> None:
        """The operation is done. A failure counts as seen, since the end of the block reports it."""
        if self._operation.state is OperationState.FAILED:
            self._failure = self._operation.exception()
        # Not at once: if the task runs now, the cancellation would hit the next await, even after the block.
        self._task.get_loop().call_soon(self._interrupt)

    def _interrupt(self) -> None:
        if not self._over:
            self._sent = True
            self._task.cancel()
