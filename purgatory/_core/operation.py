"""Layer 2: one operation that waits, and how it ends exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from math import inf
from typing import Any, Final, NoReturn, Self, cast, final

from purgatory._core.outcome import (
    CANCELLED,
    COMPLETED,
    EXPIRED,
    FAILED,
    NEW,
    NO_OUTCOME,
    PENDING,
    Failure,
    Given,
    OperationState,
    Timing,
)
from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer import TimerTask, TimingWheel
from purgatory._core.timer.task import protected
from purgatory._mypyc import mypyc_attr
from purgatory.errors import OperationWithdrawn


class Owner:
    """The engine, as the lower layers call it.

    An operation belongs to the owner in the engine that it was offered to.
    """

    __slots__ = ("evaluations", "loop")

    # None until the engine is open.
    loop: asyncio.AbstractEventLoop | None
    # The tasks in which async conditions are evaluated. The engine only keeps them; closing waits for them.
    evaluations: set[asyncio.Future[Any]]

    def end(self, operation: Operation, state: OperationState, outcome: Failure | Given | None) -> None:
        """Decide `operation`, forget it everywhere, settle it, and account for it.

        When this raises before that is done, a second call goes on.
        """
        raise NotImplementedError

    def park(self, operation: Operation) -> None:
        """Park an operation that was offered while the books were being written."""
        raise NotImplementedError

    def reschedule(self, operation: Operation, seconds: float) -> None:
        """Give the pending `operation` a new timeout, which counts from now.

        When this raises, the operation keeps the old one.
        """
        raise NotImplementedError

    def is_closing(self) -> bool:
        """Whether it is closing or closed."""
        raise NotImplementedError

    def keys_of(self, operation: Operation) -> tuple[Hashable, ...]:
        """The keys that the pending `operation` watches."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Operation(TimerTask):
    """A `DelayedOperation` without its type parameter and without `await`.

    No compiled class can derive from Generic: mypyc 2.4 gives it a slot for weak references that it visits
    and clears wrongly, so that the first weak reference to an instance crashes. And no coroutine is compiled.
    """

    __slots__ = ("_outcome", "_owner", "_parked", "_state", "_timeout", "_timing", "_waiters", "_watched")

    # Its keys. While it is PENDING, the record that its Watchers keep instead (see there). Set by __new__, so
    # that __init__ can tell a new operation from one that a purgatory refers to.
    _watched: Any

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        # TimerTask.__new__ does this one. This saves the call.
        operation = object.__new__(cls)
        operation._bucket = None
        operation._watched = ()
        return operation

    def __init__(self, timeout: float | None) -> None:
        if self._watched or self._bucket is not None:
            raise RuntimeError(
                f"{safe_repr(self)} was offered or scheduled before: make a new operation for each wait"
            )
        # TimerTask.__init__ does this one. This saves the call.
        self._deadline = inf
        self._state = NEW
        # _seconds does the same with a float. This saves the call.
        if type(timeout) is float:
            seconds: float = timeout
            self._timeout = seconds if seconds == seconds else _seconds(timeout)
        else:
            self._timeout = _seconds(timeout)
        self._owner: Owner | None = None
        # The place of this operation in the order in which its purgatory parked operations; 0 before that.
        self._parked = 0
        # The Waiter to wake when it ends, or a dict with these as its keys, or None.
        self._waiters: Any = None
        # NO_OUTCOME until the operation ends, and then the result, or a Failure. Until the hooks have run, it
        # may be a Given. It stays one when anything but `cancel` has withdrawn the operation.
        self._outcome: object = NO_OUTCOME
        # Set when it is offered to a purgatory that has observers, and otherwise never.
        self._timing: Timing

    def try_complete(self) -> bool:
        """Override: look at the condition and, when it holds, ``return self.force_complete()``.

        The purgatory calls this once when the operation is offered, and once for each check of a key that
        the operation watches, until the operation is done. It must not block. It may call anything on any
        purgatory.
        """
        raise NotImplementedError(f"{type(self).__name__} must override try_complete()")

    def on_complete(self) -> Any:
        """Override: what completing means. It runs exactly once, on completion and on expiration alike.

        Its return value is the result that awaiting the operation gives.
        """
        return None

    def on_expiration(self) -> None:
        """Override: runs after `on_complete`, only when the timeout, or closing, ended the wait.

        It may raise TimeoutError, which awaiting then raises. The operation stays EXPIRED, and counts as
        expired. Such an error is not reported when nobody awaits the operation.
        """

    @final
    def force_complete(self) -> bool:
        """Complete the operation whatever its condition says. True for the one call that completes it.

        `on_complete` has run when this returns. There is one exception: in an `on_complete`, in an
        `on_expiration` and in an observer, this call returns first, and `on_complete` runs as soon as that
        hook is over. So a chain of operations that complete each other needs no stack, however long it is.
        """
        return end(self, COMPLETED)

    def complete(self, value: Any) -> bool:
        """Complete the operation with `value` as its result. True for the one call that completes it.

        `on_complete` runs first, as in `force_complete`. Then `value` replaces what it has returned.
        """
        return end(self, COMPLETED, Given(value))

    @final
    def fail(self, error: Exception) -> bool:
        """End the operation with `error`, which waiters raise. True for the one call that ends it.

        No hook runs, and the state is FAILED. An error that nobody awaits is reported, as those of hooks are.
        Raises TypeError when `error` is not an Exception, or is a StopIteration, which no task can raise.
        """
        return end(self, FAILED, Failure(_checked(error)))

    @final
    def cancel(self) -> bool:
        """Withdraw the operation: no hook runs, and waiters get OperationWithdrawn. False when it is done."""
        return end(self, CANCELLED)

    @final
    def reschedule(self, timeout: float | None) -> bool:
        """Give the operation a new timeout in seconds, which counts from now. False when it is done.

        The cost is O(1), however many operations are pending. Heartbeats keep sessions alive this way. With a
        later deadline, the operation stays in its slot of the wheel until that starts.
        """
        seconds = _seconds(timeout)
        state = self._state
        if state is not NEW and state is not PENDING:
            return False
        if state is PENDING:
            cast(Owner, self._owner).reschedule(self, seconds)
        else:
            self._timeout = seconds
        return True

    @final
    def run(self) -> None:
        """Have the operation expire, as the timer does at the deadline."""
        end(self, EXPIRED)

    @final
    def _fire(self, wheel: TimingWheel) -> None:
        # The engine removes it once it is decided. Otherwise, without memory or stack to end it, it would be
        # pending without a deadline.
        if self._owner is None:
            wheel.remove(self)
        end(self, EXPIRED)

    @property
    def state(self) -> OperationState:
        """The state. It is decided before the hooks run, so hooks see how the operation ended."""
        return self._state

    @state.setter
    def state(self, value: object) -> NoReturn:
        raise protected(self, "state")

    @property
    def done(self) -> bool:
        """Whether the operation has ended, in any final state."""
        return self._state is not NEW and self._state is not PENDING

    @done.setter
    def done(self, value: object) -> NoReturn:
        raise protected(self, "done")

    @property
    def expired(self) -> bool:
        """Whether the timeout, or closing, ended the operation."""
        return self._state is EXPIRED

    @expired.setter
    def expired(self, value: object) -> NoReturn:
        raise protected(self, "expired")

    @property
    def timeout(self) -> float | None:
        """The latest timeout in seconds. None when the operation never expires."""
        return None if self._timeout == inf else self._timeout

    @timeout.setter
    def timeout(self, value: object) -> NoReturn:
        raise protected(self, "timeout")

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """The distinct keys it was offered for, in the order given. Empty before that."""
        keys: tuple[Hashable, ...] = self._watched if self._owner is None else self._owner.keys_of(self)
        try:
            return tuple(dict.fromkeys(keys))
        except Exception:
            # A key raises by now. Reports are to name the keys all the same.
            return keys

    @keys.setter
    def keys(self, value: object) -> NoReturn:
        raise protected(self, "keys")

    def result(self) -> Any:
        """The value that `complete` was given, or else the return value of `on_complete`.

        Raises the exception of a FAILED operation, the TimeoutError of `on_expiration`, OperationWithdrawn
        when the operation was withdrawn, and asyncio.InvalidStateError while there is no result yet.
        """
        outcome = self._outcome
        if outcome is NO_OUTCOME or isinstance(outcome, (Failure, Given)):
            # Without an outcome that is settled, `exception` raises.
            exception = cast(BaseException, self.exception())
            raise exception.with_traceback(cast(Failure, outcome).traceback)
        return outcome

    def exception(self) -> BaseException | None:
        """The exception that `result` raises, or None when it gives a result.

        Raises OperationWithdrawn and asyncio.InvalidStateError as `result` does.
        """
        outcome = self._outcome
        if self._state is CANCELLED:
            # Without its keys, of which there may be thousands, and as many waiters.
            cause = outcome.value if isinstance(outcome, Given) else "by cancel()"
            raise OperationWithdrawn(f"{type(self).__name__} was withdrawn {cause}")
        if outcome is NO_OUTCOME or isinstance(outcome, Given):
            raise asyncio.InvalidStateError(f"{safe_repr(self)} has no result yet")
        if isinstance(outcome, Failure):
            outcome.seen = True
            return outcome.exception
        return None

    def __repr__(self) -> str:
        timeout = None if self._timeout == inf else f"{self._timeout} s"
        return f"<{type(self).__name__} {self._state.value} timeout={timeout} keys={list(self.keys)}>"


# The limit of a check without a limit: no count reaches it.
NO_LIMIT: Final = -1
# What is raised where memory or stack have run out. The type keeps mypyc from making a new tuple each time.
NO_ROOM: Final[tuple[type[Exception], ...]] = (MemoryError, RecursionError)
HOOKS: Final = ("try_complete", "on_complete", "on_expiration")

# The names that no subclass and no instance may use for anything else.
PROTECTED_NAMES: Final = frozenset(
    name for kind in (Operation, TimerTask) for name in vars(kind) if name[:2] != "__" and name not in HOOKS
)


def _seconds(timeout: Any) -> float:
    # Any, because a compiled float takes no int that is too large for it.
    if type(timeout) is float:
        # Mostly it is one. This saves the calls below.
        given: float = timeout
        if given == given:
            return given
    if timeout is None:
        return inf
    if not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be a number of seconds or None, not {timeout!r}")
    try:
        seconds = float(timeout)
    except OverflowError:
        raise OverflowError("timeout is too large for a float: use None for no timeout") from None
    if seconds != seconds:
        raise ValueError("timeout must be a number of seconds or None, not NaN")
    return seconds


def _checked(error: Any) -> Exception:
    if not isinstance(error, Exception) or isinstance(error, StopIteration):
        raise TypeError(f"an operation fails with an Exception, and no StopIteration, not with {error!r}")
    return error


def end(operation: Operation, state: OperationState, outcome: Failure | Given | None = None) -> bool:
    """End `operation` in `state`. True for the one call that ends it. Every end passes through here.

    With a Failure as the `outcome` no hook runs. The state is decided first. Then the engine forgets the
    operation, and only then do hooks run. So a hook always meets an operation that is done and an engine
    whose books are right.
    """
    current = operation._state
    if current is not NEW and current is not PENDING:
        return False
    owner = operation._owner
    if owner is not None:
        owner.end(operation, state, outcome)
        return True
    operation._state = state
    if outcome is not None:
        operation._outcome = outcome
    raised = settle(operation)
    if operation._waiters is not None:
        for _, problem in wake(operation, again=True) or ():
            raised = raised or problem
    if raised is not None:
        raise raised
    return True


def settle(operation: Operation) -> BaseException | None:
    """Run the hooks of an operation that is decided, and note its outcome. Call it again if it raises.

    Returns what a hook raised, which makes the operation FAILED. An operation that has its outcome, such as a
    Failure that ended it, runs no hook.
    """
    given = operation._outcome
    if given is not NO_OUTCOME and not isinstance(given, Given):
        return None
    raised: BaseException | None = None
    state: OperationState = operation._state
    if state is COMPLETED or state is EXPIRED:
        # Any: an override may return what it likes, on both builds.
        hooks: Any = operation
        try:
            value = hooks.on_complete()
            # The value of `complete` replaces that of `on_complete`.
            operation._outcome = value if given is NO_OUTCOME else cast(Given, given).value
            if state is EXPIRED:
                try:
                    hooks.on_expiration()
                except TimeoutError as timeout:
                    operation._outcome = Failure(timeout)
        except BaseException as failure:
            operation._state = FAILED
            operation._outcome = NO_OUTCOME
            raised = failure
            operation._outcome = Failure(failure)
    elif state is FAILED:
        # There was no memory to note what the hook had raised.
        operation._outcome = Failure(MemoryError("a hook raised an exception that nobody had memory for"))
    return raised


def wake(operation: Operation, *, again: bool) -> list[tuple[object, BaseException]] | None:
    """Wake the waiters of an operation. Returns those that could not be woken, each with the reason.

    Where there is no room for the call that wakes a waiter, this raises. Call it `again` then.
    """
    waiters = operation._waiters
    failed: list[tuple[object, BaseException]] | None = None
    for waiter in list(waiters) if type(waiters) is dict else [waiters]:
        # A waiter that has not noted its wake-up gets a second call.
        called_again = False
        while True:
            try:
                # A task may have been cancelled in this very turn.
                if not waiter.done():
                    waiter.set_result(None)
                break
            except BaseException as error:
                if not waiter.done():
                    if not again and isinstance(error, NO_ROOM):
                        raise
                    if not called_again:
                        called_again = True
                        continue
                # The loop of that task is closed, for example.
                failed = [*(failed or ()), (waiter, error)]
                break
    operation._waiters = None
    return failed
