"""The operation as its users extend it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from purgatory._core.operation import Operation

R = TypeVar("R")


class DelayedOperation(Operation, Generic[R]):
    """Something that waits for a condition, or for its timeout, whichever comes first.

    Subclass it, call ``super().__init__(timeout)``, and override `try_complete` and, where there is a
    result or something to clean up, `on_complete` and `on_expiration`. Offer it to a purgatory with
    `Purgatory.try_complete_else_watch`, and await it or don't: the hooks run either way.

    `timeout` is in seconds, counted from the moment it is offered. None or infinity never expires; zero or
    less means that the condition is tried once and the operation expires at once if it does not hold.
    Raises ValueError for NaN, TypeError for what is not a number.

    Names that begin with an underscore are not free: its own fields are `_state`, `_timeout`, `_waiters` and
    the like.

    After Kafka's `DelayedOperation`, with two differences: what ends an operation also takes it off every
    list it is on, and an exception in a hook ends that operation (FAILED) and nothing else. (Like any
    exception that is kept, that of a FAILED operation keeps the frames it came through, and so itself,
    alive until the garbage collector finds them.)
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def on_complete(self) -> R: ...
        def result(self) -> R: ...
        def __await__(self) -> Generator[Any, None, R]: ...
