"""Conditions that are awaited, and the operation of `wait_until`, whose condition may be one."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from math import inf
from types import CodeType
from typing import Any, Final, Literal, TypeVar, cast, final

from purgatory._cancellation import is_cancelled, until_done
from purgatory._core.checker import Checker
from purgatory._core.engine import Engine
from purgatory._core.operation import end, tried
from purgatory._core.outcome import CANCELLED, FAILED, Failure, Given
from purgatory._core.waiting import accompany
from purgatory.delayed_operation import DelayedOperation
from purgatory.errors import own_error, safe_repr

T = TypeVar("T")

# The cause, for the message of OperationWithdrawn.
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
        # Both are None when the operation has ended, because they would keep it alive.
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
            # In the next turn, because an evaluation that has completed the operation is still running.
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
            value, self._first = self._first, None
            if value is None:
                value = condition()
            if inspect.isawaitable(value):
                value = await value
            holds = bool(value)
        except BaseException as error:
            # (`Foreign` would take 200 bytes of each evaluation.)
            cancelled = isinstance(error, asyncio.CancelledError) and is_cancelled()
            if cancelled or isinstance(error, GeneratorExit):
                raise
            own = own_error(error, f"the condition of {type(operation).__name__}")
            if not end(operation, FAILED, Failure(own)) or not isinstance(own, Exception):
                raise own from own.__cause__
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
            # The loop has raised a KeyboardInterrupt and a SystemExit already.
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

    __slots__ = ("_checker", "_every", "_look", "_value", "evaluator", "predicate")

    def __init__(
        self, checker: Checker, predicate: Callable[[], Any], timeout: float | None, every: float | None
    ) -> None:
        super().__init__(timeout)
        self._checker = checker
        if every is not None and not 0 < every < inf:
            raise ValueError(f"every must be a positive number of seconds, or None, not {every!r}")
        self.predicate = predicate
        # What a try calls.
        self._look = predicate
        self._every = every
        self._value: Any = None
        # Only an async predicate has one.
        self.evaluator: Evaluator | None = None

    def try_complete(self) -> bool:
        value = self._look()
        if value and value is not True and inspect.isawaitable(value):
            self.evaluator = Evaluator(self, self.predicate, value)
            self._look = self.evaluator.ask
            value = self.evaluator.ask()
        if value:
            self._value = value
            return self.force_complete()
        if self._every is not None:
            self.try_again_in(self._every)
        return False

    def on_complete(self) -> T:
        return cast(T, self._value)

    def on_unclaimed(self) -> None:
        """A check with a limit has chosen this operation for nothing. The next in line is to be tried."""
        for key in self.keys:
            self._checker.check(key, 1)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.place}>"

    @property
    def place(self) -> str:
        """The name of the predicate, and where it stands."""
        function: Any = self.predicate
        while isinstance(function, partial):
            function = function.func
        code = getattr(function, "__code__", None)
        if not isinstance(code, CodeType):
            return safe_repr(function)
        return f"{code.co_qualname} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"

    def timeout_error(self) -> TimeoutError:
        """The error of a wait that has expired. It says whether anybody has checked a key."""
        keys = ", ".join(map(safe_repr, self.keys))
        if not self.timed_out:
            return TimeoutError(f"{self.place} did not hold before the purgatory was closed; keys: {keys}")
        within = f"within {self.timeout} seconds"
        if self._tries > 1:
            return TimeoutError(f"{self.place} did not hold {within}, {tried(self)}; keys: {keys}")
        if self.timeout is not None and self.timeout <= 0:
            return TimeoutError(f"{self.place} did not hold when it was tried; keys: {keys}")
        return TimeoutError(f"{self.place} did not hold at its first try, and nobody checked {keys} {within}")
