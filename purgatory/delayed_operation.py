"""The operation as its users extend it."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from purgatory._core.operation import HOOKS, PROTECTED_NAMES, Operation
from purgatory._core.ready_made import Quorum
from purgatory._core.waiting import abandon, settled, wait_for
from purgatory._protected_names import check_names

R = TypeVar("R")


class DelayedOperation(Operation, Generic[R]):
    """An operation that waits for a condition, or for its timeout, whichever comes first.

    Subclass it, call ``super().__init__(timeout)``, and override `try_complete`. Override `on_complete` and
    `on_expiration` where there is a result or something to clean up. Offer it to a purgatory with
    `Purgatory.try_complete_else_watch`, and await it or not: the hooks run either way.

    `timeout` is in seconds, and counts from the offer. None and infinity never expire. With zero or less the
    condition is tried once, and the operation expires at once if it does not hold. Raises ValueError for NaN
    and TypeError for anything that is not a number.

    Make an operation for each wait. Calling `__init__` again on one that was offered raises RuntimeError.
    Copying and pickling raise TypeError.

    The names of its methods and properties, except the hooks, belong to the library, and so do `_state`,
    `_timeout`, `_waiters` and the like. A subclass that overrides one, or assigns to it in a method, is
    refused with TypeError, and so is an `async def` hook.

    The model is Kafka's `DelayedOperation`, with two differences. An operation that ends leaves every list at
    once. An exception in a hook ends that operation (FAILED) and nothing else. (The exception of a FAILED
    operation keeps its frames alive, and so the operation itself, until the garbage collector runs.)
    """

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_names(cls, _PROTECTED)
        for hook in HOOKS:
            if inspect.iscoroutinefunction(getattr(cls, hook)):
                mend = (
                    "Override condition() of an AsyncDelayedOperation instead"
                    if hook == "try_complete"
                    else "Write `def`, and create a task where something has to be awaited"
                )
                raise TypeError(
                    f"{cls.__name__}.{hook} must not be `async def`: the purgatory does not wait in a hook. "
                    f"{mend}"
                )

    if TYPE_CHECKING:

        def on_complete(self) -> R: ...
        def complete(self, value: R) -> bool: ...
        def result(self) -> R: ...

    else:
        # Here it comes before the __new__ of `Operation`, from which `inspect` would take the signature.
        __init__ = Operation.__init__

        @property
        def add_done_callback(self) -> NoReturn:
            """asyncio.wait would ask for it, and name no way out."""
            raise AttributeError(
                f"{type(self).__name__} is an awaitable, neither a future nor a task: asyncio.wait() and "
                "done callbacks need asyncio.ensure_future(operation), which makes a task that awaits it"
            )

    def __await__(self) -> Generator[Any, None, R]:
        """The result, as soon as there is one. Cancelling the last waiting task withdraws the operation.

        Raises OperationWithdrawn when somebody else withdraws it. Raises RuntimeError for an operation that
        was not offered yet, and in another event loop than that of its purgatory, because there the task
        would wait forever.
        """
        if not settled(self):
            # Each task gets a future of its own, for its wake-up only. Cancelling a task cancels the future
            # that it awaits, and the operation must outlive that while another task awaits it.
            waiter = wait_for(self)
            # `yield from waiter` does the same, but makes an iterator.
            waiter._asyncio_future_blocking = True
            try:
                yield waiter
            except BaseException:
                if not self.done:
                    abandon(self, waiter)
                raise
        # A subclass may have a field of this name.
        outcome: R = Operation.result(self)
        return outcome


# The names that no subclass may use for anything else, by the base that they belong to.
_PROTECTED: Final[Mapping[type, frozenset[str]]] = {
    DelayedOperation: PROTECTED_NAMES,
    Quorum: frozenset(name for name in vars(Quorum) if name[:2] != "__" and name not in HOOKS),
}
