"""The class of operations that users extend."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from purgatory._core.operation import Operation

R = TypeVar("R")


class DelayedOperation(Operation, Generic[R]):
    """An operation that waits for a condition, or for its timeout, whichever comes first.

    Subclass it, call ``super().__init__(timeout)``, and override `try_complete`. Where there is a result or
    something to clean up, also override `on_complete` and `on_expiration`. Offer the operation to a purgatory
    with `Purgatory.try_complete_else_watch`. You may await it or not: the hooks run either way.

    `timeout` is in seconds and counts from the moment the operation is offered. None or infinity never
    expires. With zero or less, the condition is tried once, and the operation expires at once if it does not
    hold. Raises ValueError for NaN, and TypeError for a value that is not a number.

    Names that begin with an underscore are reserved: the operation's own fields are `_state`, `_timeout`,
    `_waiters` and the like.

    After Kafka's `DelayedOperation`, with two differences. The end of an operation also takes it off every
    watch list and out of the timing wheel. An exception in a hook ends that operation (FAILED) and no other.
    (Like any stored exception, that of a FAILED operation refers to the frames it came through, and so to the
    operation itself. Both stay alive until the garbage collector finds them.)
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def on_complete(self) -> R: ...
        def result(self) -> R: ...
        def __await__(self) -> Generator[Any, None, R]: ...
