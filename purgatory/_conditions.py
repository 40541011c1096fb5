"""Conditions that are awaited, and the operation of `wait_until`, whose condition may be one."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, Final, Literal, TypeVar, cast, final

from purgatory._core.engine import Engine
from purgatory._core.operation import end
from purgatory._core.outcome import CANCELLED, FAILED, Failure, Given
from purgatory._core.waiting import accompany
from purgatory._foreign import Foreign
from purgatory._uninterrupted import until_done
from purgatory.delayed_operation import DelayedOperation
from purgatory.errors import own_error

T = TypeVar("T")

# In words for the message of OperationWithdrawn.
BY_EVALUATION: Final = Given("because the evaluation of its condition was cancelled")


@final
class Evaluator:
    """Evaluates the condition of an operation that is being offered, one evaluation at a time.

    A try cannot wait, so it asks for an evaluation. The evaluation begins in the next turn of the loop, as a
    task in the context of the code that offered the operation. However often somebody asks during an
    evaluation, one more follows. So an evaluation begins after each try, and sees what was there before it.
    An evaluation that finds a true value completes the operation with it, and nothing else runs in between.

    The end of the operation cancels the evaluation. Closing the purgatory waits for it.
    """

    __slots__ = (
        "_again",
        "_busy",
        "_condition",
        "_context",
        "_first",
        "_loop",
        "_operation",
        "_owner",
        "_task",
    )

    def __init__(
        self,
        operation: DelayedOperation[Any],
        condition: Callable[[], Any],
        first: Awaitable[Any] | None = None,
    ) -> None:
        """`first` is what the condition has returned already. The first evaluation awaits it."""
        self._owner = cast(Engine, operation._owner)
        loop = self._owner.loop
        if not isinstance(loop, asyncio.AbstractEventLoop):
            _drop(first)
            raise RuntimeError(
                f"{type(operation).__name__} has an async condition, which needs an event loop: "
                "test it on a VirtualTimeLoop in place of a ManualClock"
            )
        self._loop = loop
        # None once the operation has ended. Otherwise they would keep it alive.
        self._operation: DelayedOperation[Any] | None = operation
        self._condition: Callable[[], Any] | None = condition
        self._first = first
        self._context = contextvars.copy_context()
        # Whether an evaluation is going to begin, or running.
        self._busy = False
        # Whether somebody has asked since it began.
        self._again = False
        self._task: asyncio.Task[None] | None = None
        accompany(operation, self)

    def ask(self) -> Literal[False]:
        """Have an evaluation begin after this call. Returns False, as a try that completes nothing."""
        if self._busy:
            self._again = True
        else:
            # Not at once: an eager task would run in the middle of the engine.
            self._loop.call_soon(self._begin, context=self._context)
            self._busy = True
        return False

    def part(self) -> None:
        """Leave an operation that was refused. When it is offered again, it gets another evaluator."""
        if self._operation is not None:
            # Nobody else can wait for it.
            self._operation._waiters = None
        self._forget()

    async def ended(self) -> None:
        """When the operation has ended, wait for its evaluation, even when this task is cancelled."""
        task = self._task
        # A coroutine that is being closed cannot wait. A task cannot wait for itself.
        if self._operation is not None or task is None or isinstance(sys.exception(), GeneratorExit):
            return
        if task is not asyncio.current_task():
            cancelled = await until_done(task)
            if cancelled is not None:
                raise cancelled

    # The two methods of a future that the operation calls to wake a waiter

    def done(self) -> bool:
        """Whether it knows that the operation has ended."""
        return self._operation is None

    def set_result(self, _: None) -> None:
        """The operation has ended."""
        if self._task is not None:
            # In the next turn. By then the evaluation is over that has completed the operation itself.
            self._loop.call_soon(self._task.cancel)
        self._forget()

    def _forget(self) -> None:
        self._operation = self._condition = None

    # The evaluation

    def _begin(self) -> None:
        operation, condition = self._operation, self._condition
        if operation is None or condition is None or operation._owner is None:
            # The operation has ended, or was refused.
            self.part()
            self._drop_first()
            return
        if self._first is None or inspect.iscoroutine(self._first):
            # Anything else may have looked at the condition already, in a thread for example.
            self._again = False
        evaluation = self._evaluate(operation, condition)
        try:
            task = self._loop.create_task(evaluation, name=f"condition of {type(operation).__name__}")
        except BaseException as error:
            # Nobody would ever look at the condition.
            evaluation.close()
            self._drop_first()
            failure = Failure(own_error(error, "the task factory"))
            if not end(operation, FAILED, failure) or not isinstance(error, Exception):
                raise
            return
        self._task = task
        self._owner.evaluations.add(task)
        task.add_done_callback(self._over)
        if self._operation is None:
            # The operation has ended while the task was made. An eager task runs at that time.
            task.cancel()

    async def _evaluate(self, operation: DelayedOperation[Any], condition: Callable[[], Any]) -> None:
        try:
            with Foreign(f"the condition of {type(operation).__name__}"):
                value, self._first = self._first, None
                if value is None:
                    value = condition()
                if inspect.isawaitable(value):
                    value = await value
                holds = bool(value)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            if not end(operation, FAILED, Failure(error)) or not isinstance(error, Exception):
                raise
            return
        if holds:
            operation.complete(value)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._owner.evaluations.discard(task)
        self._task = None
        self._busy = False
        # It has remained if the task was cancelled before it ran.
        self._drop_first()
        operation = self._operation
        if task.cancelled():
            if operation is not None:
                end(operation, CANCELLED, BY_EVALUATION)
            return
        error = task.exception()
        if error is not None and not isinstance(error, (KeyboardInterrupt, SystemExit)):
            # Of those two the loop has raised each already.
            message = f"the evaluation of the {task.get_name()} raised"
            self._loop.call_exception_handler({"message": message, "exception": error, "task": task})
        if self._again and operation is not None:
            self._busy = True
            self._begin()

    def _drop_first(self) -> None:
        first, self._first = self._first, None
        _drop(first)


def _drop(awaitable: Awaitable[Any] | None) -> None:
    """Nobody is going to await it."""
    if inspect.iscoroutine(awaitable):
        # Otherwise it would warn that nobody has awaited it.
        awaitable.close()
    elif isinstance(awaitable, asyncio.Future):
        awaitable.cancel()


class PredicateOperation(DelayedOperation[T]):
    """Completes with the first truthy value of `predicate`, which every try calls.

    As soon as the predicate returns an awaitable, it is an async one. From then on every try asks for an
    evaluation. (The first call tells, because no look at a function or a lambda does. It costs a plain
    predicate nothing.)
    """

    __slots__ = ("_every", "_predicate", "_value", "evaluator")

    def __init__(self, predicate: Callable[[], Any], timeout: float | None, every: float | None) -> None:
        super().__init__(timeout)
        if every is not None and not 0 < every < inf:
            raise ValueError(f"every must be a positive number of seconds, or None, not {every!r}")
        self._predicate = predicate
        self._every = every
        self._value: Any = None
        # Only an async predicate has one.
        self.evaluator: Evaluator | None = None

    def try_complete(self) -> bool:
        value = self._predicate()
        if value and value is not True and inspect.isawaitable(value):
            self.evaluator = Evaluator(self, self._predicate, value)
            self._predicate = self.evaluator.ask
            value = self.evaluator.ask()
        if value:
            self._value = value
            return self.force_complete()
        if self._every is not None:
            self.try_again_in(self._every)
        return False

    def on_complete(self) -> T:
        return cast(T, self._value)
