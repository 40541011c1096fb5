"""Layer 2: one operation that waits, and how it ends exactly once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Hashable
from math import inf
from typing import TYPE_CHECKING, Any, Final, Self, cast, final

from purgatory._core._mypyc import i64, mypyc_attr
from purgatory._core.outcome import (
    BY_WAITER,
    CANCELLED,
    COMPLETED,
    EXPIRED,
    FAILED,
    NEW,
    NO_OUTCOME,
    PENDING,
    Failure,
    Given,
    GivenFailure,
    OperationState,
    Timing,
)
from purgatory._core.timer import TimerTask
from purgatory.errors import NoCondition, OperationWithdrawn, own_error, safe_repr

if TYPE_CHECKING:
    from purgatory._core.engine import Engine


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

    def __init__(self, timeout: Any) -> None:
        # Any, here and below, because compiled code refuses an argument without naming it.
        if self._watched or self._bucket is not None:
            raise RuntimeError(
                f"{safe_repr(self)} was offered or scheduled before: make a new operation for each wait"
            )
        # TimerTask.__init__ does this one. This saves the call.
        self._deadline = inf
        self._tries = 0
        self._state = NEW
        self._timeout = _seconds(timeout)
        # The engine that it was offered to, until the engine has ended it.
        self._owner: Engine | None = None
        # Its number in the order in which its purgatory parked operations. 0 before that and after its end.
        # BY_CLOSING when closing has ended it.
        self._parked: i64 = 0
        # The Waiter to wake when it ends, or a dict with these as its keys, or None.
        self._waiters: Any = None
        # NO_OUTCOME until the operation ends, and then the result, or a Failure. Until the hooks have run, it
        # may be a Given. It stays one when anything but `cancel` has withdrawn the operation.
        self._outcome: object = NO_OUTCOME
        # It has one when it was offered to a purgatory that has observers.
        self._timing: Timing

    def try_complete(self) -> bool:
        """Override: look at the condition and, when it holds, ``return self.force_complete()``.

        The purgatory calls this when the operation is offered, and in each check of one of its keys, until
        the operation is done. It must not block. It may call anything on any purgatory.
        """
        raise NoCondition(f"{type(self).__name__} must override try_complete(), which is its condition")

    def on_complete(self) -> Any:
        """Override: what completing means. It runs exactly once, on completion and on expiration alike.

        Its return value is the result that awaiting the operation gives.
        """
        return None

    def on_expiration(self) -> None:
        """Override: runs after `on_complete`, only when the timeout, or closing, ended the wait.

        It may raise TimeoutError, which awaiting then raises. The operation stays EXPIRED. Nobody is told.
        """

    def on_unclaimed(self) -> None:
        """Override: give back what `on_complete` took, when nobody got the result, and check the key.

        It runs once, in the task that is cancelled, when the operation is COMPLETED, tasks have awaited it,
        and all of them were cancelled before they had the result. Afterwards awaiting the operation raises
        OperationWithdrawn. A task that has the result has claimed it. So does `asyncio.shield(operation)`,
        because the task that it makes goes on.
        """

    @final
    def force_complete(self) -> bool:
        """Complete the operation whatever its condition says. True for the one call that completes it.

        When all tasks that await it are cancelled already, this withdraws it and returns False. `on_complete`
        has run when this returns. But in an `on_complete`, an `on_expiration` and an observer, this call
        returns first, and `on_complete` runs when that hook is over. So a chain of operations that complete
        each other needs no stack, however long it is.
        """
        return end(self, COMPLETED)

    def complete(self, value: Any) -> bool:
        """Complete the operation with `value` as its result. True for the one call that completes it.

        It returns False where `force_complete` does. `on_complete` runs first. `value` replaces its result.
        """
        return end(self, COMPLETED, Given(value))

    @final
    def fail(self, error: Exception) -> bool:
        """End the operation with `error`, which waiters raise. True for the one call that ends it.

        No hook runs, and the state is FAILED. The error is a result like any other: it is reported when the
        operation is freed and nobody has seen it, as a Future's is. It returns False where
        `force_complete` does.
        Raises TypeError when `error` is not an Exception, or is a StopIteration, which no task can raise.
        """
        return end(self, FAILED, failure_of(error))

    @final
    def cancel(self) -> bool:
        """Withdraw the operation: no hook runs, and waiters get OperationWithdrawn. False when it is done."""
        return end(self, CANCELLED)

    def reschedule(self, timeout: Any) -> bool:
        """Give the operation a new timeout in seconds, which counts from now. False when it is done.

        The cost is O(1), however many operations are pending. Heartbeats keep sessions alive this way. With a
        later deadline, the operation stays in its slot of the wheel until that starts.
        """
        seconds = _seconds(timeout)
        state = self._state
        if state is not NEW and state is not PENDING:
            return False
        if state is PENDING:
            cast("Engine", self._owner).reschedule(self, seconds)
        else:
            self._timeout = seconds
        return True

    def try_again_in(self, seconds: Any) -> bool:
        """Have the operation tried once in so many seconds, or at its deadline if that is sooner.

        Call it in `try_complete`, or from outside while the operation is pending, for a condition that comes
        true by time: a rate limit, a quiet period. The latest call counts, and None ends what was asked for.
        The operation is tried a tick from now at the earliest. False when it is done. Raises RuntimeError
        before it is offered. The cost is O(1), and nothing for operations that do not use it.
        """
        when = _seconds(seconds, "seconds")
        owner = self._owner
        if self._state is PENDING:
            cast("Engine", owner).wake_in(self, when)
            return True
        if self._state is not NEW:
            return False
        if owner is None:
            raise RuntimeError(f"offer {safe_repr(self)} first, or call try_again_in() in its try_complete()")
        # It is going to be parked: until then the deadline has no other use.
        self._deadline = owner.timer.clock() + max(when, 0.0)
        return True

    @final
    def _wake(self) -> None:
        cast("Engine", self._owner).wake(self)

    @final
    def run(self) -> None:
        """Have the operation expire, as the timer does at the deadline."""
        end(self, EXPIRED)

    @property
    def state(self) -> OperationState:
        """The state. It is decided before the hooks run, so hooks see how the operation ended."""
        return self._state

    @property
    def done(self) -> bool:
        """Whether the operation has ended, in any final state."""
        return self._state is not NEW and self._state is not PENDING

    @property
    def expired(self) -> bool:
        """Whether the timeout, or closing, ended the operation. `timed_out` tells the two apart."""
        return self._state is EXPIRED

    @property
    def timed_out(self) -> bool:
        """Whether the timeout ended the operation, and not the closing of its purgatory."""
        # Its owner is there while its hooks run.
        closed = self._parked == BY_CLOSING if self._owner is None else self._owner.closing
        return self._state is EXPIRED and not closed

    @property
    def timeout(self) -> float | None:
        """The latest timeout in seconds. None means never."""
        return None if self._timeout == inf else self._timeout

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """The distinct keys it was offered for, in the order given. Empty before that."""
        keys = named(self._watched if self._owner is None else self._owner.keys_of(self))
        try:
            return tuple(dict.fromkeys(keys))
        except (Exception, asyncio.CancelledError):
            # A key raises by now. Reports are to name the keys all the same.
            return keys

    def result(self) -> Any:
        """The value that `complete` was given, or else the return value of `on_complete`.

        Raises the exception of a FAILED operation, the TimeoutError of `on_expiration`, OperationWithdrawn
        when the operation was withdrawn, and asyncio.InvalidStateError while there is no result yet.
        """
        outcome = self._outcome
        if outcome is NO_OUTCOME or isinstance(outcome, (Failure, Given)):
            # Where there is no outcome yet, `exception` raises.
            exception = cast(BaseException, self.exception())
            raise exception.with_traceback(cast(Failure, outcome).traceback)
        return outcome

    def exception(self) -> BaseException | None:
        """The exception that `result` raises, or None when it gives a result.

        Raises OperationWithdrawn and asyncio.InvalidStateError as `result` does.
        """
        outcome = self._outcome
        if self._state is CANCELLED:
            # The keys are not named: there may be thousands of keys, and of tasks that raise this.
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
        kind, state, keys = type(self).__name__, self._state.value, list(self.keys)
        tries = f" {tried(self)}" if self._tries > 0 else ""
        return f"<{kind} {state} timeout={timeout} keys={keys}{tries}>"


@mypyc_attr(allow_interpreted_subclasses=True)
class Unconditional(Operation):
    """An operation that its own methods end. A check does nothing to it, so it needs no key."""

    __slots__ = ()

    def try_complete(self) -> bool:
        return False


def tried(operation: Operation) -> str:
    """In words, how often the operation was tried. The first try is its offer."""
    return "tried once" if operation._tries == 1 else f"tried {operation._tries} times"


# The limit of a check without a limit: no count reaches it.
NO_LIMIT: Final = -1
BY_CLOSING: Final = -1

# What an operation without a key watches, so that closing and `operations` find it.
NO_KEY: Final = object()
NO_KEYS: Final[tuple[Hashable, ...]] = (NO_KEY,)

HOOKS: Final = ("try_complete", "on_complete", "on_expiration", "on_unclaimed")

# The names that no subclass and no instance may use for anything else.
PROTECTED_NAMES: Final = frozenset(
    name for kind in (Operation, TimerTask) for name in vars(kind) if name[:2] != "__" and name not in HOOKS
)


def named(keys: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """The keys of an operation without NO_KEY, which is the first one where it is there."""
    return keys[1:] if keys and keys[0] is NO_KEY else keys


def _seconds(timeout: Any, name: str = "timeout") -> float:
    # Any, because a compiled float takes no int that is too large for it.
    if type(timeout) is float:
        given: float = timeout
        if given == given:
            return given
    if timeout is None:
        return inf
    if not isinstance(timeout, (int, float)):
        raise TypeError(f"{name} must be a number of seconds or None, not {timeout!r}")
    try:
        seconds = float(timeout)
    except OverflowError:
        raise OverflowError(f"{name} is too large for a float: use None for no {name}") from None
    if seconds != seconds:
        raise ValueError(f"{name} must be a number of seconds or None, not NaN")
    return seconds


def failure_of(error: Any) -> GivenFailure:
    """What `fail` makes of the error that it is given. Any: on both builds, that may be what it likes."""
    if not isinstance(error, Exception) or isinstance(error, StopIteration):
        raise TypeError(f"an operation fails with an Exception, and no StopIteration, not with {error!r}")
    return GivenFailure(error)


def failed_by(operation: Operation, returned: Any) -> bool:
    """Fail an operation that waits although its `try_complete` has `returned` something true."""
    hook = f"{type(operation).__name__}.try_complete()"
    try:
        if not returned:
            return False
        if inspect.isawaitable(returned):
            if inspect.iscoroutine(returned):
                # Otherwise it would warn that nobody has awaited it.
                returned.close()
            raise TypeError(f"{hook} returned an awaitable, but the purgatory does not wait in a hook")
        raise RuntimeError(
            f"{hook} returned {safe_repr(returned)}, but did not complete the operation: "
            "when the condition holds, `return self.force_complete()`"
        )
    except (Exception, asyncio.CancelledError) as error:
        return end(operation, FAILED, Failure(own_error(error, hook)))


def end(operation: Operation, state: OperationState, outcome: Failure | Given | None = None) -> bool:
    """End `operation` in `state`. True for the one call that ends it. Every end passes through here.

    The state is decided first. Then the engine forgets the operation, and only then do hooks run. So a hook
    meets an operation that is done, and an engine whose books are right. With a Failure no hook runs.
    """
    current = operation._state
    if current is not NEW and current is not PENDING:
        if state is COMPLETED and operation._owner is not None and operation._owner.debugger is not None:
            operation._owner.debugger.would_complete(operation)
        return False
    if operation._waiters is not None and (state is COMPLETED or state is FAILED) and deserted(operation):
        end(operation, CANCELLED, BY_WAITER)
        return False
    engine = operation._owner
    if engine is not None:
        engine.end(operation, state, outcome)
        return True
    operation._state = state
    if outcome is not None:
        operation._outcome = outcome
    raised = settle(operation)
    unwoken = None if operation._waiters is None else wake(operation)
    if unwoken and raised is None:
        raised = unwoken[0][1]
    if raised is not None:
        raise raised
    return True


def settle(operation: Operation) -> BaseException | None:
    """Run the hooks of an operation that is decided, and note its outcome. With a Failure no hook runs.

    Returns what a hook raised, which makes the operation FAILED.
    """
    given = operation._outcome
    expired = operation._state is EXPIRED
    if not (expired or operation._state is COMPLETED):
        return None
    # Any, because an override may return anything, on both builds.
    hooks: Any = operation
    try:
        value = hooks.on_complete()
        # The value of `complete` replaces the value of `on_complete`.
        operation._outcome = value if given is NO_OUTCOME else cast(Given, given).value
        if expired:
            try:
                hooks.on_expiration()
            except TimeoutError as timeout:
                operation._outcome = Failure(timeout)
    except BaseException as error:
        failure = own_error(error, f"a hook of {type(operation).__name__}")
        operation._state = FAILED
        operation._outcome = Failure(failure)
        return failure
    return None


def deserted(operation: Operation) -> bool:
    """Whether all tasks that await the operation, which has waiters, were cancelled, and will run next."""
    waiters = operation._waiters
    if type(waiters) is not dict:
        return bool(waiters.cancelled())
    tasks = 0
    for waiter, companion in waiters.items():
        if companion is None:
            if not waiter.cancelled():
                return False
            tasks += 1
    return tasks > 0


def wake(operation: Operation) -> list[tuple[object, BaseException]] | None:
    """Wake the waiters of an operation, which has some. Returns the waiters that could not be woken, and why.

    They stay, until one of their tasks claims the result.
    """
    waiters = operation._waiters
    if type(waiters) is not dict:
        error = _wake(waiters)
        return None if error is None else [(waiters, error)]
    # A copy, because a finalizer may close a coroutine that awaits the operation.
    return [(waiter, error) for waiter in list(waiters) if (error := _wake(waiter)) is not None]


def _wake(waiter: Any) -> BaseException | None:
    try:
        # A task may have been cancelled in this very turn.
        if not waiter.done():
            waiter.set_result(None)
    except BaseException as error:
        return error
    return None
