"""Layer 2: the state, the timing and the outcome of one operation."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context
    from types import TracebackType


class OperationState(enum.Enum):
    """The state of an operation. It leaves NEW or PENDING once, for one of the final states."""

    NEW = "new"
    PENDING = "pending"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"

    # Members are singletons. Hashing by identity is six times as fast as the enum's own hash of the name.
    __hash__ = object.__hash__


# A member is slow to look up on the enum, so these are globals.
NEW: Final = OperationState.NEW
PENDING: Final = OperationState.PENDING
COMPLETED: Final = OperationState.COMPLETED
EXPIRED: Final = OperationState.EXPIRED
CANCELLED: Final = OperationState.CANCELLED
FAILED: Final = OperationState.FAILED


@final
class Timing:
    """The timing of one operation in a purgatory that has observers.

    `offered` and `ended` are seconds of the loop's time, by the clock that deadlines count from. (On uvloop
    that clock is more exact than ``loop.time()``.) It ends when the hooks have run. `tries` counts the calls
    of `try_complete`, the first one included. `context` is the context of the offer, if a `ContextObserver`
    asks for it. Without a context, a Timing refers to nothing, so an observer may keep it.
    """

    __slots__ = ("context", "ended", "offered", "tries")

    # The engine sets them. An __init__ would double the cost of the interpreted core.
    context: Context
    offered: float
    ended: float
    tries: int

    def __repr__(self) -> str:
        return f"<Timing offered={self.offered} ended={self.ended} tries={self.tries}>"


class Failure:
    """An exception as the outcome, and whether anybody has seen it."""

    __slots__ = ("exception", "seen", "traceback")

    def __init__(self, exception: BaseException) -> None:
        self.exception = exception
        # Every waiter raises the exception with this traceback. Otherwise each would add its own frames.
        self.traceback: TracebackType | None = exception.__traceback__
        self.seen = False


@final
class GivenFailure(Failure):
    """The exception that `fail` was given. It is a result, which somebody may await later, as a Future's."""

    __slots__ = ("report",)

    def __init__(self, exception: BaseException) -> None:
        super().__init__(exception)
        # Called with the exception when this is freed and nobody has seen it.
        self.report: Callable[[BaseException], None] | None = None

    def __del__(self) -> None:
        if self.report is not None and not self.seen:
            self.report(self.exception)


@final
class Given:
    """The value of `complete`, or the cause of a withdrawal, for the message of OperationWithdrawn."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


# The outcome before the end.
NO_OUTCOME: Final = object()
BY_KEY: Final = Given("by cancel_for_key()")
BY_WAITER: Final = Given("because the last task that awaited it was cancelled")
