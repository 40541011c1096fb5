"""Operations that need no class of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar

from purgatory._core import ready_made
from purgatory.delayed_operation import DelayedOperation

T = TypeVar("T")
M = TypeVar("M", bound=Hashable)


class DelayedValue(ready_made.Value, DelayedOperation[T]):
    """Waits for a value that somebody hands over: ``DelayedValue[str](timeout=5)``.

    `complete(value)` ends the wait, and awaiting gives that value. `fail(error)` ends it, too, and awaiting
    raises that error. When the timeout, or closing, ends the wait, awaiting raises TimeoutError, and the
    operation counts as expired. Use it for a response that belongs to a request, and for the result of a job.

    A check of its key does nothing. `Purgatory.operations` and `Purgatory.cancel_for_key` find the operation
    by the key. Offer it before the value can come, because an operation that is done cannot be offered.
    """

    __slots__ = ()


class DelayedQuorum(ready_made.Quorum, DelayedOperation[tuple[M, ...]]):
    """Waits until `needed` of the `members` have acknowledged: ``DelayedQuorum(2, replicas, timeout=5)``.

    Each `acknowledge(member)` counts one. The result is a tuple of those that have acknowledged, in the order
    in which they did. When the timeout, or closing, ends the wait, awaiting raises QuorumTimedOut, which is a
    TimeoutError. When so many members `refuse` that the rest is too few, it raises QuorumNotReached at once,
    which is none. Both errors have the tuples `missing` and `refused`. The operation needs no check of its
    key, because `acknowledge` and `refuse` look at the count themselves.

    A member that is named twice counts once. Raises TypeError when `needed` is no int, and ValueError when it
    is below 1 or above the number of members.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, needed: int, members: Iterable[M], timeout: float | None) -> None: ...
        @property
        def acknowledged(self) -> tuple[M, ...]: ...
        @property
        def refused(self) -> tuple[M, ...]: ...
        @property
        def missing(self) -> tuple[M, ...]: ...
        def on_complete(self) -> tuple[M, ...]: ...


class Session(ready_made.Session, DelayedOperation[None]):
    """Calls `callback` when nobody has renewed it for `timeout` seconds: ``Session(30, go_offline)``.

    `renew()` gives it its timeout again, in O(1). `cancel()` ends it without the callback. So does closing
    the purgatory, because then the timeout is not over. It needs no key.

    The callback takes no arguments, and the session is done when it runs. When it raises, the session fails,
    and nothing else does. It must not be async. Where something has to be awaited, it creates a task.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, timeout: float | None, callback: Callable[[], object]) -> None: ...
