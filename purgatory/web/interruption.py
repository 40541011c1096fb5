"""A wait for something else, ended as soon as an operation is done."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, cast, final

from purgatory._core.operation import OperationState, wake_when_done
from purgatory._core.safe_repr import safe_repr
from purgatory.delayed_operation import DelayedOperation


@final
class Interruption:
    """``with Interruption(operation):`` ends when the pending `operation` is done, whatever it awaits.

    To be entered in a task, once. What is awaited is cancelled, and the cancellation ends here, as that of
    asyncio.timeout does; one that comes from elsewhere goes up. So one task waits for two things, and none is
    made for the second of them.

    An operation that fails is for whoever has entered it to ask, unless something else goes up: then the
    loop's exception handler gets it.
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
        # What is no Exception has gone up already, from where it was raised.
        if isinstance(self._failure, Exception) and error is not None and not ended:
            message = f"{safe_repr(self._operation)} failed and nobody awaited it"
            context = {"message": message, "exception": self._failure}
            self._task.get_loop().call_exception_handler(context)
        return ended

    # What the operation sees of it: a future on which somebody waits

    def done(self) -> bool:
        """Whether the block has been left."""
        return self._over

    def set_result(self, _: None) -> None:
        """The operation is done. If it failed, that counts as seen, and is told of when the block is left."""
        if self._operation.state is OperationState.FAILED:
            self._failure = self._operation.exception()
        # Later, because the task may be what runs now. A cancellation would then hit whatever it awaits next.
        self._task.get_loop().call_soon(self._interrupt)

    def _interrupt(self) -> None:
        if not self._over:
            self._sent = True
            self._task.cancel()
