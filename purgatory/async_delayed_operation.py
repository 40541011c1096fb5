"""The operation whose condition is a coroutine."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final, Literal, TypeVar, final

from purgatory._conditions import Evaluator
from purgatory._core.operation import Operation
from purgatory._core.outcome import NEW
from purgatory._core.waiting import abandon, claim, future_for, settled, wake_when_done
from purgatory.delayed_operation import DelayedOperation, check_names

R = TypeVar("R")


class AsyncDelayedOperation(DelayedOperation[R]):
    """A delayed operation with an async condition: one that asks a database, a cache or another service.

    Subclass it, call ``super().__init__(timeout)``, and override `condition`. Its first true value completes
    the operation, and is the result. `on_complete` runs, too; after an expiration its value is the result, as
    in any operation.

    **When it is evaluated.** Each try asks for an evaluation: the offer, and each check of a key. The
    evaluation begins in a later turn of the loop, in a task. There is one evaluation at a time. After any
    number of tries during an evaluation, one more follows. So an evaluation begins after each check, and sees
    a change that was made before the check. A check does not count what it completes in this way, and its
    limit does not bound it. With a timeout of zero or less, the operation expires and nothing is evaluated.

    **What it cannot promise.** A plain `try_complete` looks at the condition and completes the operation in
    one step. Here other tasks run while `condition` waits, and what it has read may have changed when it
    returns. Between its last await and `on_complete` nothing else runs. But no more than that can be relied
    on: two operations may have seen the same job. So let the condition only look. Whoever is woken takes the
    job by one atomic step of the store, such as a compare-and-set, and waits again when somebody else was
    faster.

    **How it ends.** When the operation ends, by its timeout, a withdrawal or closing, a running evaluation is
    cancelled. Awaiting the operation, and closing, return when that evaluation has ended. So one that ignores
    its cancellation delays them. An exception of `condition` fails the operation. So does a
    CancelledError of something that it awaits or reads, as RuntimeError. When somebody else cancels the
    evaluation, the operation is withdrawn.

    Evaluations run in a copy of the context (`contextvars`) of the code that offered the operation. They need
    an event loop: on a `ManualClock` the operation fails with RuntimeError.

    An operation takes about 500 bytes more than a `DelayedOperation`: the copy of the context, and what
    begins the next evaluation. Each evaluation costs a task, and with it 1,200 bytes more while it runs.

    Raises TypeError when the class does not override `condition`. A subclass that overrides `try_complete` is
    refused with TypeError.
    """

    __slots__ = ("_evaluator",)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_names(cls, _PROTECTED)

    def __init__(self, timeout: float | None) -> None:
        if type(self).condition is AsyncDelayedOperation.condition:
            raise TypeError(f"{type(self).__name__} must override condition(), which every evaluation awaits")
        super().__init__(timeout)
        # The evaluator of the last offer.
        self._evaluator: Evaluator | None = None

    async def condition(self) -> R | Literal[False] | None:
        """Override: look at the condition. A true value completes the operation, and becomes its result.

        It is cancelled when the operation ends. Cancellation reaches what it awaits, so put `asyncio.shield`
        around a future or a task that others await, too.
        """
        raise NotImplementedError

    @final
    def try_complete(self) -> bool:
        """Ask for an evaluation of `condition`. Returns False."""
        evaluator = self._evaluator
        if evaluator is None or self.state is NEW:
            if evaluator is not None:
                # A purgatory has refused the operation before.
                evaluator.part()
            evaluator = self._evaluator = Evaluator(self, self.condition)
        return evaluator.ask()

    def __await__(self) -> Generator[Any, None, R]:
        """The result, as soon as there is one and no evaluation is running. It raises as in any operation."""
        ended = settled(self)
        waiter = future_for(self)
        wake_when_done(self, waiter)
        try:
            if not ended:
                yield from waiter
            yield from self._evaluation_ended()
        except BaseException:
            abandon(self, waiter)
            yield from self._evaluation_ended()
            raise
        claim(self)
        outcome: R = Operation.result(self)
        return outcome

    def _evaluation_ended(self) -> Generator[Any, None, None]:
        if self._evaluator is not None:
            yield from self._evaluator.ended().__await__()


# The names that no subclass may use for anything else.
_PROTECTED: Final[Mapping[type, frozenset[str]]] = {
    AsyncDelayedOperation: frozenset({"_evaluator", "try_complete"})
}
