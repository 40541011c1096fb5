"""Layer 2: the tasks that await an operation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from purgatory._core.operation import Operation, end
from purgatory._core.outcome import BY_WAITER, CANCELLED, COMPLETED, NEW, NO_OUTCOME, Failure, Given
from purgatory.errors import OperationWithdrawn, own_error, safe_repr

if TYPE_CHECKING:
    from purgatory._core.engine import Engine


class Companion(Protocol):
    """Is woken by the end of an operation: an asyncio.Future, or an object with these two methods."""

    def done(self) -> bool:
        """Whether it no longer needs to be woken."""

    def set_result(self, result: None, /) -> None:
        """The operation has its outcome. Its engine is still at work, so this only takes a note."""


class Waiter(Companion, Protocol):
    """Stands for a task that awaits an operation: an asyncio.Future, or an object with these methods."""

    def cancelled(self) -> bool:
        """Whether the task is cancelled already, and is going to abandon the operation."""

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the task."""


def settled(operation: Operation) -> bool:
    """Whether the operation has ended, and all its hooks have run. Tasks that await it wait for that."""
    if operation._owner is not None:
        return False
    outcome = operation._outcome
    return (outcome is not NO_OUTCOME and not isinstance(outcome, Given)) or operation._state is CANCELLED


def future_for(operation: Operation) -> asyncio.Future[None]:
    """A future of the running loop for a task that is going to await `operation`.

    Raises RuntimeError where nobody would ever wake that loop.
    """
    loop = asyncio.get_running_loop()
    owner = operation._owner
    if owner is None:
        if operation._state is NEW:
            raise RuntimeError(
                f"{safe_repr(operation)} would never end: offer it before you await it, as in "
                "`await purgatory.try_complete_else_watch(operation, keys)`"
            )
    else:
        check_loop(owner, operation)
    return loop.create_future()


def check_loop(engine: Engine, waits: object) -> None:
    """Raise RuntimeError in another event loop than the engine's, where nothing would wake the task."""
    # A ManualClock of the tests is no event loop. Any task may await the operations of its purgatories.
    if isinstance(engine.loop, asyncio.AbstractEventLoop) and engine.loop is not asyncio.get_running_loop():
        raise RuntimeError(
            f"{safe_repr(waits)} belongs to the purgatory of another event loop: await it there, for example "
            "by asyncio.run_coroutine_threadsafe(coroutine, loop), or use a purgatory for each loop"
        )


def wake_when_done(operation: Operation, waiter: Waiter) -> None:
    """Have `waiter` woken when `operation`, which is not settled yet, ends."""
    waiters = operation._waiters
    if waiters is None:
        operation._waiters = waiter
    elif type(waiters) is dict:
        waiters[waiter] = None
    else:
        operation._waiters = {waiters: None, waiter: None}
    if settled(operation) and not waiter.done():  # A finalizer has ended it meanwhile.
        waiter.set_result(None)


def accompany(operation: Operation, companion: Companion) -> None:
    """Have `companion` woken when `operation` ends. Whether a task awaits the operation is another matter."""
    waiters = operation._waiters
    if type(waiters) is not dict:
        waiters = operation._waiters = {} if waiters is None else {waiters: None}
    # Only companions have a value.
    waiters[companion] = companion
    if settled(operation) and not companion.done():  # As above.
        companion.set_result(None)


def claim(operation: Operation) -> None:
    """A task that has awaited `operation` has its result."""
    operation._waiters = None


def abandon(operation: Operation, waiter: Waiter) -> None:
    """A task that awaited `operation` is cancelled. When no other one awaits it, the operation is withdrawn.

    When it is completed already, and no task has the result, it gives back what it took.
    """
    owner = operation._owner
    if owner is not None and operation.done:
        # Its end may have been put off.
        owner.queue.resume()
        if operation._owner is not None:
            # A hook or a finalizer closes the coroutine. The end goes on when that is over.
            waiter.get_loop().call_soon(abandon, operation, waiter)
            return
    waiters = operation._waiters
    if waiters is None:
        # Another task has claimed the result.
        return
    if type(waiters) is dict:
        del waiters[waiter]
        if None in waiters.values():
            return
    else:
        operation._waiters = None
    if not end(operation, CANCELLED, BY_WAITER) and operation._state is COMPLETED:
        operation._waiters = None
        _give_back(operation, waiter.get_loop())


def _give_back(operation: Operation, loop: asyncio.AbstractEventLoop) -> None:
    kind: Any = type(operation)
    base: Any = Operation
    if kind.on_unclaimed is base.on_unclaimed:
        return
    hooks: Any = operation
    try:
        hooks.on_unclaimed()
    except BaseException as error:
        own = own_error(error, f"{kind.__name__}.on_unclaimed()")
        if not isinstance(own, Exception):
            raise
        # The task goes on with its cancellation.
        message = f"{safe_repr(operation)} could not give back what it took"
        loop.call_exception_handler({"message": message, "exception": own})
    finally:
        withdrawn = OperationWithdrawn(f"{kind.__name__} was completed, and then gave back what it took")
        operation._outcome = Failure(withdrawn)
