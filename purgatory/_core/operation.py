"""Layer 2: one operation that waits, and how it ends exactly once."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Generator, Hashable
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast, final

from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer import TimerTask
from purgatory._core.timing import Timing
from purgatory._core.waiter import Waiter
from purgatory._mypyc import mypyc_attr

if TYPE_CHECKING:
    from types import TracebackType


class OperationState(enum.Enum):
    """Where an operation stands. It leaves NEW or PENDING once, for one of the other four."""

    NEW = "new"
    PENDING = "pending"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"


# A member is a slow look-up on the enum; these are globals.
NEW: Final = OperationState.NEW
PENDING: Final = OperationState.PENDING
COMPLETED: Final = OperationState.COMPLETED
EXPIRED: Final = OperationState.EXPIRED
CANCELLED: Final = OperationState.CANCELLED
FAILED: Final = OperationState.FAILED


@final
class Failure:
    """The outcome of a FAILED operation, and whether anybody has seen it yet."""

    __slots__ = ("exception", "seen", "traceback")

    def __init__(self, exception: BaseException) -> None:
        self.exception = exception
        # Raised anew for every waiter from the same place, or each would add its frames to the last one's.
        self.traceback: TracebackType | None = exception.__traceback__
        self.seen = False


class Owner:
    """A purgatory as the layers below it see it."""

    def ending(self, operation: Operation) -> None:
        """`operation` has been decided: forget it everywhere. Its hooks, if any, run next."""
        raise NotImplementedError

    def ended(self, operation: Operation) -> None:
        """Its hooks have run, its outcome is set, and the tasks that await it are woken."""
        raise NotImplementedError

    def rescheduled(self, operation: Operation) -> None:
        """The pending `operation` has a new timeout, which counts from now."""
        raise NotImplementedError

    def keys_of(self, operation: Operation) -> tuple[Hashable, ...]:
        """The keys that the pending `operation` watches."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Operation(TimerTask):
    """A `DelayedOperation` but for its type parameter, which no compiled class can have.

    What mypyc 2.4 compiles of a class that derives from Generic has a slot for weak references that it
    visits and clears as if they were its own. So the first weak reference to an instance ends in a crash.
    """

    __slots__ = ("_outcome", "_owner", "_parked", "_state", "_timeout", "_timing", "_waiters", "_watched")

    def __init__(self, timeout: float | None) -> None:
        # What TimerTask's own __init__ does, without the call.
        self._bucket = None
        self._deadline = inf
        self._state = NEW
        # What _seconds does with a float, without the call.
        self._timeout = timeout if type(timeout) is float and timeout == timeout else _seconds(timeout)
        self._owner: Owner | None = None
        # How many operations its purgatory had parked before it, itself included.
        self._parked = 0
        # Its keys; while PENDING, what its Watchers keep there instead.
        self._watched: Any = ()
        # The Waiter that wakes the task that awaits it, or a list of these; None while nobody does.
        self._waiters: Any = None
        # What on_complete returned, or a Failure; the operation itself says that there is none yet.
        self._outcome: object = _NONE_YET
        # Since it was offered to a purgatory that is observed; elsewhere it is never set.
        self._timing: Timing

    def try_complete(self) -> bool:
        """Override: look at the condition and, when it holds, ``return self.force_complete()``.

        Called once when the operation is offered and once per check of a key it watches, until it is
        done. It must not block; it may call anything on any purgatory.
        """
        raise NotImplementedError(f"{type(self).__name__} must override try_complete()")

    def on_complete(self) -> Any:
        """Override: what completing means. Runs exactly once, on completion and on expiration alike.

        What it returns is the result that awaiting the operation gives.
        """
        return None

    def on_expiration(self) -> None:
        """Override: runs after `on_complete`, only when the timeout (or closing) ended the wait."""

    @final
    def force_complete(self) -> bool:
        """Complete the operation whatever its condition says; True for the one call that does."""
        return end(self, COMPLETED)

    @final
    def cancel(self) -> bool:
        """Withdraw the operation: no hook runs, waiters get CancelledError. False when it is done."""
        return end(self, CANCELLED)

    @final
    def reschedule(self, timeout: float | None) -> bool:
        """Give it a new timeout, in seconds from now (see the class); False when it is done already.

        O(1), whatever the number of operations pending: this is how sessions are kept alive by heartbeats.
        """
        seconds = _seconds(timeout)
        state = self._state
        if state is not NEW and state is not PENDING:
            return False
        self._timeout = seconds
        if state is PENDING:
            cast(Owner, self._owner).rescheduled(self)
        return True

    @final
    def run(self) -> None:
        """Called by the timer at the deadline: the operation expires."""
        end(self, EXPIRED)

    @property
    def state(self) -> OperationState:
        """Where the operation stands; decided before its hooks run, so they see how it ended."""
        return self._state

    @property
    def done(self) -> bool:
        """Whether it has ended, in whichever way."""
        return self._state is not NEW and self._state is not PENDING

    @property
    def expired(self) -> bool:
        """Whether the timeout ended it."""
        return self._state is EXPIRED

    @property
    def timeout(self) -> float | None:
        """The latest timeout given, in seconds; None when it never expires."""
        return None if self._timeout == inf else self._timeout

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """The distinct keys it was offered for, in the order given; empty before that."""
        keys = self._watched
        if self._state is PENDING:
            keys = cast(Owner, self._owner).keys_of(self)
        return tuple(dict.fromkeys(keys))

    def result(self) -> Any:
        """What `on_complete` returned, or raise what ended the operation otherwise.

        Raises asyncio.InvalidStateError while there is no result yet, CancelledError when it was withdrawn.
        """
        exception = self.exception()
        if exception is not None:
            raise exception.with_traceback(cast(Failure, self._outcome).traceback)
        return self._outcome

    def exception(self) -> BaseException | None:
        """The exception of a FAILED operation, else None. Raises as `result` does without an outcome."""
        if self._state is CANCELLED:
            raise asyncio.CancelledError(f"{safe_repr(self)} was withdrawn")
        outcome = self._outcome
        if outcome is _NONE_YET:
            raise asyncio.InvalidStateError(f"{safe_repr(self)} has no result yet")
        if isinstance(outcome, Failure):
            outcome.seen = True
            return outcome.exception
        return None

    def __await__(self) -> Generator[Any, None, Any]:
        """The result, as soon as there is one. When the last task that awaits is cancelled, so is this."""
        return _outcome_of(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._state.value} timeout={self.timeout} keys={list(self.keys)}>"


_NONE_YET: Final = object()


def _seconds(timeout: float | None) -> float:
    if timeout is None:
        return inf
    if not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be a number of seconds or None, not {timeout!r}")
    if timeout != timeout:
        raise ValueError("timeout must be a number of seconds or None, not NaN")
    return float(timeout)


def end(operation: Operation, state: OperationState) -> bool:
    """End `operation` in `state`; True for the one call that does. Every end but `fail` comes through here.

    Decide first, then forget it everywhere, then run the hooks, then wake the waiters: whatever a hook
    does, it meets an operation that is done and purgatories whose books are right.
    """
    current = operation._state
    if current is not NEW and current is not PENDING:
        return False
    owner = operation._owner
    operation._state = state
    if owner is not None:
        owner.ending(operation)
    escaping: BaseException | None = None
    if state is not CANCELLED:
        # Any, because an override may return what it likes, the same in both builds.
        hooks: Any = operation
        try:
            operation._outcome = hooks.on_complete()
            if state is EXPIRED:
                hooks.on_expiration()
        except BaseException as error:
            operation._state = FAILED
            operation._outcome = Failure(error)
            if owner is None or not isinstance(error, Exception):
                # Nobody else would be told, or nothing that may be kept back: the caller gets it.
                escaping = error
    if operation._waiters is not None:
        _wake(operation)
    operation._owner = None
    if owner is not None:
        owner.ended(operation)
    if escaping is not None:
        raise escaping
    return True


def fail(operation: Operation, error: BaseException) -> bool:
    """End `operation`, which a purgatory keeps, as FAILED, without its hooks; False when it is done."""
    current = operation._state
    if current is not NEW and current is not PENDING:
        return False
    operation._state = FAILED
    operation._outcome = Failure(error)
    owner = cast(Owner, operation._owner)
    owner.ending(operation)
    if operation._waiters is not None:
        _wake(operation)
    operation._owner = None
    owner.ended(operation)
    return True


def _outcome_of(operation: Operation) -> Generator[Any, None, Any]:
    """What `await operation` runs. (Of a generator that is no method, mypyc makes one object, not two.)"""
    if not operation.done:
        # Only a wake-up call, one for each task: cancelling a task cancels what it is suspended on, and
        # the operation must outlive that while another task waits for it.
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wake_when_done(operation, waiter)
        # What `yield from waiter` does, without making an iterator for it.
        waiter._asyncio_future_blocking = True
        try:
            yield waiter
        finally:
            if not operation.done:
                _abandon(operation, waiter)
    try:
        return operation.result()
    except StopIteration as error:
        # In a generator it would pass for a result. (Interpreted ones raise just this by themselves; and
        # what is compiled forgets the cause after `raise from`.)
        replacement = RuntimeError("a hook raised StopIteration")
        replacement.__cause__ = error
        raise replacement from error


def wake_when_done(operation: Operation, waiter: Waiter) -> None:
    """Have `waiter` told that `operation`, which is not done yet, is done."""
    if operation._waiters is None:
        operation._waiters = waiter
    elif type(operation._waiters) is list:
        operation._waiters.append(waiter)
    else:
        operation._waiters = [operation._waiters, waiter]


def _abandon(operation: Operation, waiter: asyncio.Future[None]) -> None:
    """A task gives up awaiting `operation`, which is withdrawn if no other awaits it."""
    if type(operation._waiters) is list:
        waiters: list[asyncio.Future[None]] = operation._waiters
        waiters.remove(waiter)
        if waiters:
            return
    operation._waiters = None
    operation.cancel()


def _wake(operation: Operation) -> None:
    """Wake the tasks that await `operation`."""
    waiters = operation._waiters
    operation._waiters = None
    for waiter in waiters if type(waiters) is list else (waiters,):
        # A task may have been cancelled in this very turn.
        if not waiter.done():
            waiter.set_result(None)
