"""Layer 4: an engine tries operations, parks the ones that have to wait, and ends and counts them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable, Iterable
from contextvars import copy_context
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

from purgatory._core._mypyc import i64
from purgatory._core.action_queue import IDLE, SETTLING, TRYING, WRITING, ActionQueue, action_queue_of
from purgatory._core.observers import Observers
from purgatory._core.operation import (
    BY_CLOSING,
    NO_KEY,
    NO_KEYS,
    Operation,
    Unconditional,
    deserted,
    end,
    failed_by,
    settle,
    wake,
)
from purgatory._core.outcome import (
    BY_WAITER,
    CANCELLED,
    COMPLETED,
    EXPIRED,
    FAILED,
    NEW,
    PENDING,
    Failure,
    Given,
    OperationState,
    Timing,
)
from purgatory._core.timer import Timer
from purgatory._core.watchers import Watchers, first_watched, hashable_keys, keys_at
from purgatory.errors import (
    NoCondition,
    PurgatoryClosed,
    PurgatoryFull,
    PurgatoryNotOpen,
    own_error,
    safe_repr,
)

if TYPE_CHECKING:
    from purgatory.observer import KeyObserver, Observer
    from purgatory.reports import Debugger, Reporter

Op = TypeVar("Op", bound=Operation)

# The number of tries of a durable operation, which only DurableOperations may offer.
NOT_HERE: Final = -1

# More operations than fit into any memory.
NO_MAXIMUM: Final = 1 << 62


@final
class Engine:
    """The operations of one purgatory, from their offer to their end.

    An operation is wholly parked or not at all. Its end is decided first, and then it leaves every book,
    whatever raises. The books are the timer, the watch lists and the counts. No await is in the core, so only
    a user's code can run in the middle of a method. `action_queue` says what that may do.
    """

    # The levels of the loop, once the engine is open.
    queue: ActionQueue

    def __init__(
        self,
        name: str,
        timer: Timer,
        reporter: Reporter,
        max_pending: int | None,
        observers: tuple[Observer, ...],
    ) -> None:
        if max_pending is not None and max_pending < 1:
            raise ValueError(f"max_pending must be at least 1, or None for no limit, not {max_pending!r}")
        self.name = name
        self.timer = timer
        self.watchers = Watchers()
        self.reporter = reporter
        self.observers = Observers(name, timer, reporter, observers)
        self.observed = bool(observers)
        # It is told of the first and of the last watcher of each key.
        self.key_observer: KeyObserver | None = None
        # There is one in debug mode only.
        self.debugger: Debugger | None = None
        self.max_pending = max_pending
        self._most: i64 = NO_MAXIMUM if max_pending is None else min(max_pending, NO_MAXIMUM)
        # The loop and its thread, once it is open.
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: i64 = 0
        # Whether it takes operations, and whether it is closing or closed and never takes any again.
        self.open = False
        self.closing = False
        # The operations that are in the middle of `watch_also`, each called in the try of the one before it.
        self._widened: list[Operation] = []
        # The tasks for which closing waits: evaluations of async conditions, and loads of a SingleFlight.
        self.evaluations: set[asyncio.Future[Any]] = set()
        # How many operations were ever parked. That is the number of the latest one.
        self.parked: i64 = 0
        self.pending: i64 = 0
        self.completed: i64 = 0
        self.expired: i64 = 0
        # Operations that expired, and that nobody had tried since their offer.
        self.expired_untried: i64 = 0
        self.cancelled: i64 = 0
        self.failed: i64 = 0
        # Operations that were refused, because `max_pending` operations were waiting.
        self.refused: i64 = 0
        # How often sweeps and closing have paused.
        self.slices: i64 = 0

    # Opening and closing

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take operations from now on. Raises RuntimeError when open, PurgatoryClosed when closed."""
        if self.closing:
            raise PurgatoryClosed(f"purgatory {self.name!r} has been closed: make a new one")
        if self.open:
            raise RuntimeError(f"purgatory {self.name!r} is open already")
        self.timer.start(loop)
        self.reporter.open_on(loop)
        self.queue = action_queue_of(loop)
        self.thread = thread_id()
        self.loop = loop
        self.open = True

    def shut(self) -> None:
        """Take no more operations, and stop the timer."""
        self.open = False
        self.closing = True
        self.timer.stop()

    def not_open(self) -> PurgatoryClosed:
        """The error of a call that comes too early or too late."""
        if self.closing:
            return PurgatoryClosed(f"purgatory {self.name!r} has been closed")
        return PurgatoryNotOpen(f"purgatory {self.name!r} is not open: use `async with`, or start() it")

    def check_thread(self) -> None:
        """Raise RuntimeError in another thread than the loop's, which would not notice the call."""
        # After closing, a check does nothing in any thread.
        if thread_id() != self.thread and (self.pending or not self.closing):
            raise RuntimeError(
                "a purgatory belongs to the thread of its event loop: from another thread call "
                "check_and_complete_threadsafe(key), or loop.call_soon_threadsafe with any other method"
            )

    # Offering and parking

    def offer(self, operation: Op, keys: Iterable[Hashable]) -> Op:
        """Try `operation` once. If its condition does not hold, park it on `keys` until its timeout."""
        given = hashable_keys(keys)
        if not self.open:
            raise self.not_open()
        if not given:
            if not isinstance(operation, Unconditional):
                raise ValueError("an operation must watch at least one key")
            given = NO_KEYS
        try:
            if operation._state is not NEW or operation._tries:
                raise _refusal(operation)
        except AttributeError:
            raise TypeError(
                f"{type(operation).__name__}.__init__ must call super().__init__(timeout)"
            ) from None
        if self.observed:
            self._observe(operation)
        # Any, because an override may return anything, on both builds. The state tells what happened.
        hooks: Any = operation
        operation._tries = 1
        operation._owner = self
        operation._watched = given
        queue = self.queue
        level = queue.level
        if level == IDLE:
            queue.level = TRYING
        whole = False
        try:
            try:
                debugger = self.debugger
                tried: Any = hooks.try_complete() if debugger is None else debugger.try_complete(operation)
            except BaseException as error:
                if isinstance(error, NoCondition) or self.reporter.try_failed(operation, error):
                    raise
            if operation._state is NEW and (tried is False or not failed_by(operation, tried)):
                if level == WRITING:
                    queue.defer(operation)
                else:
                    self._park(operation, given)
            whole = True
        except BaseException as error:
            if operation._state is NEW:
                # The purgatory is full, or a key could not be looked up: nothing is kept of the operation.
                operation._owner = None
                operation._watched = ()
                operation._tries = 0
                operation._deadline = inf
            if isinstance(error, asyncio.CancelledError):
                raise own_error(error, "a key, or the observer of the keys,") from error
            whole = isinstance(error, Exception)
            raise
        finally:
            queue.leave(level, whole)
        return operation

    def _observe(self, operation: Operation) -> None:
        """Note when the operation is offered, and in which context if an observer asks for it."""
        timing = Timing()
        timing.offered = self.timer.clock()
        if self.observers.need_context:
            timing.context = copy_context()
        operation._timing = timing
        if self.debugger is not None:
            self.check_thread()
            self.debugger.check_fields(operation)
        if operation._state is not NEW:  # A finalizer has ended it meanwhile.
            raise _refusal(operation)

    def _park(self, operation: Operation, keys: tuple[Hashable, ...]) -> None:
        """Put `operation` on the watch lists of its keys and on the wheel, or on none of them.

        Where this raises, the caller goes back to its own level.
        """
        # The operation may have been tried by an eager task that closed the purgatory.
        if operation._timeout <= 0 or not self.open:
            operation._deadline = inf
            end(operation, EXPIRED)
            return
        if self.pending >= self._most:
            self.refused += 1
            raise PurgatoryFull(f"purgatory {self.name!r} holds {self.pending} operations already")
        queue = self.queue
        level = queue.level
        queue.level = WRITING
        self.watchers.watch(operation, keys)
        self.pending += 1
        operation._parked = self.parked = self.parked + 1
        try:
            if self.key_observer is not None:
                self._tell_watched(operation._watched)
            if operation._state is NEW:
                operation._state = PENDING
                # Last, because the methods of a key may give it another timeout, or ask for another try.
                timeout, wake = operation._timeout, operation._deadline
                if wake != inf:
                    operation._deadline = inf
                if timeout == inf:
                    # The timer refuses it where it has a timeout.
                    if operation._bucket is not None:
                        offered = safe_repr(operation)
                        raise RuntimeError(f"{offered} is in a timing wheel already: remove it there first")
                elif not self.timer.schedule(operation, timeout):
                    end(operation, EXPIRED)
                if wake != inf and operation._state is PENDING:
                    self.timer.wake_at(operation, wake)
            elif operation._owner is None:
                # It had ended before the level was WRITING. Otherwise what is left of its end waits.
                self._forget(operation)
        except BaseException:
            if operation._state is PENDING:
                operation._state = NEW
            if operation._parked:
                self._forget(operation)
            raise
        queue.level = level
        if self.closing:
            # A method of a key has closed the purgatory meanwhile.
            end(operation, EXPIRED)

    def _tell_watched(self, places: object) -> None:
        """Tell the key observer which keys at `places` have their first watcher. It may refuse it."""
        observer: Any = self.key_observer
        for key in first_watched(places):
            if key is not NO_KEY:
                observer.key_watched(key)

    # Trying

    def try_pending(self, operation: Operation) -> bool:
        """Try an operation that is pending. Returns whether it is completed now."""
        if operation._waiters is not None and deserted(operation):
            # It would take what nobody gets.
            end(operation, CANCELLED, BY_WAITER)
            return False
        hooks: Any = operation
        operation._tries += 1
        if self.queue.round:
            self.queue.tried = operation
        try:
            debugger = self.debugger
            tried: Any = hooks.try_complete() if debugger is None else debugger.try_complete(operation)
        except BaseException as error:
            if self.reporter.try_failed(operation, error):
                raise
            return operation._state is COMPLETED
        if operation._state is COMPLETED:
            return True
        if tried is not False and operation._state is PENDING:
            failed_by(operation, tried)
        return False

    # Ending

    def end(self, operation: Operation, state: OperationState, outcome: Failure | Given | None) -> None:
        """Decide an operation that has not ended. Finish that now, or when it disturbs nothing."""
        # A task that abandons the operation runs in the thread of the loop.
        if self.debugger is not None and outcome is not BY_WAITER:
            self.check_thread()
        operation._state = state
        if outcome is not None:
            operation._outcome = outcome
        queue = self.queue
        level = queue.level
        queue.round = 0
        whole = False
        try:
            if level < SETTLING:
                self._finish(operation)
            else:
                queue.defer(operation)
                if level == SETTLING and operation._parked:
                    self._forget(operation)
            whole = True
        finally:
            queue.leave(level, whole)

    def _finish(self, operation: Operation) -> None:
        """Forget a decided operation, run its hooks, wake its waiters, and count it.

        Each step runs whatever an earlier one has raised.
        """
        raised: BaseException | None = None
        try:
            if operation._parked:
                self._forget(operation)
        finally:
            self.queue.level = SETTLING
            debugger = self.debugger
            try:
                raised = settle(operation) if debugger is None else debugger.settle(operation, self.closing)
            finally:
                self._count(operation)
        # An operation keeps an Exception. Any other BaseException, such as KeyboardInterrupt, goes up.
        if raised is not None and not isinstance(raised, Exception):
            raise raised

    def _forget(self, operation: Operation) -> None:
        """Remove a parked operation from the wheel and from its watch lists."""
        self.queue.level = WRITING
        operation._parked = 0
        self.pending -= 1
        try:
            if operation._bucket is not None:
                self.timer.remove(operation)
        finally:
            self._unwatch(operation)

    def _unwatch(self, operation: Operation) -> None:
        problem = self.watchers.unwatch(operation)
        if self.key_observer is not None:
            self._tell_left(operation)
        if problem is not None:
            problem = own_error(problem, "a key")
            if not isinstance(problem, Exception):
                raise problem
            message = f"a key of {safe_repr(operation)} raised, or has changed, since it was watched"
            self.reporter.report(message, problem)

    def _tell_left(self, operation: Operation) -> None:
        """Tell the key observer which keys have lost their last watcher, the operation."""
        observer: Any = self.key_observer
        for key in keys_at(operation._watched):
            try:
                if key is not NO_KEY and key not in self.watchers:
                    observer.key_left(key)
            except (Exception, asyncio.CancelledError) as error:
                message = f"{safe_repr(observer)} could not be told that nobody watches {safe_repr(key)}"
                self.reporter.report(message, error)

    def _count(self, operation: Operation) -> None:
        """Count an operation that has ended, wake its waiters, and report it. It has no owner any more."""
        state: OperationState = operation._state
        if state is COMPLETED:
            self.completed += 1
        elif state is EXPIRED:
            self.expired += 1
            if self.closing:
                operation._parked = BY_CLOSING
            elif operation._tries == 1 and operation._timeout > 0:
                self.expired_untried += not isinstance(operation, Unconditional)
        elif state is CANCELLED:
            self.cancelled += 1
        else:
            self.failed += 1
        # Who asks for the result gets it now.
        operation._owner = None
        unwoken = None if operation._waiters is None else wake(operation)
        try:
            if state is FAILED:
                self.reporter.operation_failed(operation)
            if unwoken is not None:
                for waiter, error in unwoken:
                    self.reporter.report(f"{safe_repr(waiter)} could not be woken", error)
        finally:
            if self.observed:
                self.observers.ended(operation)

    def attend(self, operation: Operation) -> None:
        """Do what was put off for `operation`. Its state says what that is."""
        if operation._state is NEW:
            try:
                self._park(operation, operation._watched)
            except BaseException as error:
                self.queue.level = SETTLING
                # The call that offered it has returned already.
                end(operation, FAILED, Failure(own_error(error, "a key, or the observer of the keys,")))
                if not isinstance(error, (Exception, asyncio.CancelledError)):
                    raise
        elif operation._state is PENDING:
            self.reschedule(operation, operation._timeout)
        else:
            self._finish(operation)

    # The keys of a pending operation

    def watch_also(self, operation: Operation, keys: Iterable[Hashable]) -> bool:
        """Try a pending operation. If it still waits, have it watch more keys. False when it is done."""
        self.check_thread()
        given = hashable_keys(keys)
        queue = self.queue
        level = queue.level
        if level == WRITING:
            raise RuntimeError("watch_also() cannot be called in the method of a key or in a finalizer")
        # A try that asks for the same is not to try it again. (By identity: a class may define any equality.)
        again = bool([each for each in self._widened if each is operation])
        self._widened.append(operation)
        whole = False
        try:
            if not again:
                queue.level = max(level, TRYING)
                self.try_pending(operation)
            # First, so that no finalizer ends it in between.
            queue.level = WRITING
            if operation._state is PENDING:
                self._widen(operation, given)
            whole = True
        except asyncio.CancelledError as error:
            raise own_error(error, "a key, or the observer of the keys,") from error
        finally:
            self._widened.pop()
            queue.leave(level, whole)
        return operation._state is PENDING

    def _widen(self, operation: Operation, keys: tuple[Hashable, ...]) -> None:
        """Have a pending operation watch the `keys` that it does not watch yet, or none of them."""
        watched = dict.fromkeys(self.keys_of(operation))
        more = tuple([key for key in dict.fromkeys(keys) if key not in watched])
        if not more:
            return
        before = operation._watched
        places = self.watchers.widen(operation, more)
        if self.key_observer is not None:
            try:
                self._tell_watched(places)
            except BaseException:
                operation._watched = places
                try:
                    self._unwatch(operation)
                finally:
                    operation._watched = before
                raise

    # The time of a pending operation

    def reschedule(self, operation: Operation, seconds: float) -> None:
        """Give the pending `operation` a new timeout, which counts from now.

        When the loop refuses to arm its timer, the operation keeps the old one.
        """
        if thread_id() != self.thread:
            self.check_thread()
        queue = self.queue
        level = queue.level
        if level == WRITING:
            operation._timeout = seconds
            queue.defer(operation)
            return
        whole = scheduled = False
        try:
            if seconds > 0:
                queue.level = WRITING
                timer = self.timer
                kept = timer.early and timer.keep_wake(operation, seconds)
                scheduled = kept or timer.reschedule(operation, seconds)
                queue.level = level
            else:
                operation._deadline = self.timer.clock()
            operation._timeout = seconds
            if not scheduled:
                end(operation, EXPIRED)
            whole = True
        finally:
            queue.leave(level, whole)

    def wake_in(self, operation: Operation, seconds: float) -> None:
        """Have the pending `operation` tried in so many seconds, unless its deadline is sooner."""
        self.check_thread()
        queue = self.queue
        level = queue.level
        if level == WRITING:
            cast(asyncio.AbstractEventLoop, self.loop).call_soon(operation.try_again_in, seconds)
            return
        whole = False
        try:
            queue.level = WRITING
            self.timer.wake_at(operation, self.timer.clock() + seconds)
            whole = True
        finally:
            queue.leave(level, whole)

    def wake(self, operation: Operation) -> None:
        """The time has come for which an operation has asked. Its deadline has not."""
        queue = self.queue
        level = queue.level
        whole = False
        try:
            if operation._deadline != inf:
                # First, because the try may ask for another time.
                queue.level = WRITING
                self.timer.wake_at(operation, inf)
            queue.level = max(level, TRYING)
            self.try_pending(operation)
            whole = True
        finally:
            queue.leave(level, whole)

    def keys_of(self, operation: Operation) -> tuple[Hashable, ...]:
        """The keys that the pending `operation` watches. A key named twice may be there twice."""
        return keys_at(operation._watched)


def thread_id() -> i64:
    """The number of the running thread. The build has C code call C's own function."""
    return threading.get_ident()


def reserve(operation: Operation) -> None:
    """Have a new operation refused when somebody offers it to a purgatory before `release`."""
    operation._tries = NOT_HERE


def release(operation: Operation) -> None:
    """From now on a purgatory takes the operation."""
    operation._tries = 0


def _refusal(operation: Operation) -> Exception:
    """The error of an offer of an operation that is not new."""
    offered = safe_repr(operation)
    if operation._tries == NOT_HERE:
        return TypeError(f"{offered} is durable: offer it by DurableOperations.offer()")
    if operation._tries:
        return RuntimeError(f"{offered} was offered before: make a new operation for each wait")
    return RuntimeError(f"{offered} has ended before it was offered: offer it before anything can end it")
