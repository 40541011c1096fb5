"""Layer 4: offering, checking, ending and accounting."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

from purgatory._core.engine.accounting import Accounting
from purgatory._core.engine.action_queue import (
    IDLE,
    SETTLING,
    TRYING,
    WRITING,
    ActionQueue,
    action_queue_of,
)
from purgatory._core.engine.failures import FailureReporter
from purgatory._core.engine.mistakes import Debugger, failed_by, has_no_condition
from purgatory._core.engine.signals import Signals
from purgatory._core.operation import NO_LIMIT, Operation, Owner, end, settle, settle_given, wake
from purgatory._core.outcome import (
    BY_KEY,
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
from purgatory._core.timer import Timer
from purgatory._core.watch_list import Chunk
from purgatory._core.watchers import Watchers, hashable_keys, keys_at
from purgatory.errors import PurgatoryClosed, PurgatoryFull, PurgatoryNotOpen

if TYPE_CHECKING:
    from purgatory.observer import Observer

Op = TypeVar("Op", bound=Operation)

# More operations than fit into any memory. Compiled, a number up to this is no object.
NO_MAXIMUM: Final = 1 << 61


@final
class Engine(Owner):
    """Parks operations, checks their keys and ends them. An operation is wholly parked or not at all.

    An operation is decided before anything else happens to it, and then leaves every book, whatever raises.
    No await is in here. In the middle of a method nothing else runs but a user's code: hooks, methods of
    keys, and finalizers. What that code asks for waits in the action queue where it would disturb (see the
    levels there).
    """

    __slots__ = (
        "_debug",
        "_debugger",
        "_max_pending",
        "_reporter",
        "accounting",
        "actions",
        "closing",
        "name",
        "open",
        "signals",
        "slice_seconds",
        "timer",
        "watchers",
    )

    def __init__(
        self,
        name: str,
        timer: Timer,
        max_pending: int | None,
        slice_seconds: float,
        observers: tuple[Observer, ...],
        debug: bool | None,
    ) -> None:
        if max_pending is not None and max_pending < 1:
            raise ValueError(f"max_pending must be at least 1, or None for no limit, not {max_pending!r}")
        self.loop = None
        self.name = name
        self.timer = timer
        self.watchers = Watchers()
        self.slice_seconds = slice_seconds
        # Compiled, a None among the numbers would make each of them an object.
        self._max_pending = NO_MAXIMUM if max_pending is None else min(max_pending, NO_MAXIMUM)
        self._reporter = FailureReporter(name)
        self.accounting = Accounting(name, timer, self._reporter, observers)
        # None means: as the loop does.
        self._debug = debug
        # Only in debug mode there is one.
        self._debugger: Debugger | None = None
        # The queue of the loop, once the engine is open.
        self.actions = ActionQueue(None)
        # None until the engine is open.
        self.signals: Signals | None = None
        # Whether it takes operations.
        self.open = False
        # Whether it is closing or closed, and never takes operations again.
        self.closing = False

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take operations from now on. Raises RuntimeError when open, PurgatoryClosed when closed."""
        if self.closing:
            raise PurgatoryClosed(f"purgatory {self.name!r} has been closed: make a new one")
        if self.open:
            raise RuntimeError(f"purgatory {self.name!r} is open already")
        self.timer.start(loop)
        self.loop = loop
        self._reporter.open_on(loop)
        self.actions = action_queue_of(loop)
        self.signals = Signals(loop, self._check_signalled)
        if loop.get_debug() if self._debug is None else self._debug:
            self._debugger = Debugger(loop, self._reporter)
            # The debugger wants to know how often each operation was tried.
            self.accounting.observed = True
        self.open = True

    # Offering

    def offer(self, operation: Op, keys: Iterable[Hashable]) -> Op:
        """Try `operation` once. If its condition does not hold, park it on `keys` until its timeout."""
        given = hashable_keys(keys)
        if not self.open:
            raise self.not_open()
        try:
            if operation._state is not NEW or operation._owner is not None:
                offered = safe_repr(operation)
                raise RuntimeError(f"{offered} was offered before: make a new operation for each wait")
        except AttributeError:
            made = type(operation).__name__
            raise TypeError(f"{made}.__init__ must call super().__init__(timeout)") from None
        # Any: an override may return what it likes, on both builds. The state tells what happened.
        hooks: Any = operation
        if self.accounting.observed:
            timing = Timing()
            timing.offered = self.timer.clock()
            timing.tries = 1
            operation._timing = timing
            debugger = self._debugger
            if debugger is not None:
                debugger.check_thread()
                debugger.check_fields(operation)
                hooks = debugger.trying(operation)
        operation._owner = self
        operation._watched = given
        actions = self.actions
        level = actions.level
        if level == IDLE:
            actions.level = TRYING
        try:
            try:
                tried: Any = hooks.try_complete()
            except BaseException as error:
                if isinstance(error, NotImplementedError) and has_no_condition(operation):
                    made = type(operation).__name__
                    raise TypeError(f"{made} must override try_complete(), which is its condition") from None
                if self._try_failed(operation, error):
                    raise
            if operation._state is NEW:
                if tried is not False and failed_by(operation, tried):
                    pass
                elif level == WRITING:
                    actions.defer(operation)
                else:
                    self._park(operation, given)
        except Exception:
            actions.level = level
            if operation._state is NEW:
                # The purgatory is full, or a key could not be looked up: nothing is kept of the operation.
                operation._owner = None
                operation._watched = ()
            if actions.waiting and level < SETTLING:
                actions.go_on(level)
            raise
        except BaseException:
            # Set here and not in `abort`, because there may be no stack left for another call.
            actions.level = level
            actions.waiting = True
            if operation._state is NEW:
                operation._owner = None
                operation._watched = ()
            actions.abort()
            raise
        actions.level = level
        if actions.waiting and level < SETTLING:
            actions.go_on(level)
        return operation

    def not_open(self) -> PurgatoryClosed:
        if self.closing:
            return PurgatoryClosed(f"purgatory {self.name!r} has been closed")
        return PurgatoryNotOpen(f"purgatory {self.name!r} is not open: use `async with`, or start() it")

    def _park(self, operation: Operation, keys: tuple[Hashable, ...]) -> None:
        """Put `operation` on the wheel and on the watch lists of its keys, or on none of them.

        The caller goes back to its own level.
        """
        timeout = operation._timeout
        accounting = self.accounting
        # The operation may have been tried by an eager task that closed the purgatory.
        if timeout <= 0 or not self.open:
            end(operation, EXPIRED)
            return
        # A number is an object, too. So these are made before anything changes.
        number, pending = accounting.parked + 1, accounting.pending + 1
        if pending > self._max_pending:
            raise PurgatoryFull(f"purgatory {self.name!r} holds {accounting.pending} operations already")
        actions = self.actions
        level = actions.level
        actions.level = WRITING
        try:
            if timeout == inf:
                # The timer refuses it where it has a timeout.
                if operation._bucket is not None:
                    offered = safe_repr(operation)
                    raise RuntimeError(f"{offered} is in a timing wheel already: remove it there first")
            elif not self.timer.schedule(operation, timeout):
                actions.level = level
                end(operation, EXPIRED)
                return
            self.watchers.watch(operation, keys)
        except BaseException:
            if operation._bucket is not None:
                self.timer.remove(operation)
            raise
        if operation._state is NEW:
            accounting.parked = number
            accounting.pending = pending
            operation._parked = number
            operation._state = PENDING
        else:
            # The methods of a key, or a finalizer, have ended it meanwhile. What is left of that is deferred.
            if operation._bucket is not None:
                self.timer.remove(operation)
            self.watchers.unwatch(operation)
            self.watchers.repair()

    def park(self, operation: Operation) -> None:
        actions = self.actions
        level = actions.level
        try:
            self._park(operation, operation._watched)
        except Exception as error:
            actions.level = level
            # The call that offered it has returned already.
            end(operation, FAILED, Failure(error))
        actions.level = level

    # Checking

    def check(self, key: Hashable, limit: int = NO_LIMIT) -> int:
        """Try the operations that watch `key`, until `limit` have completed, and run what hooks ask for."""
        if self._debugger is not None:
            self._debugger.check_thread()
        actions = self.actions
        if actions.level:
            # Ask even if the key has no watchers now: the operation that is being tried may watch it soon.
            actions.ask(self, key, limit)
            return 0
        place = self.watchers.on(key)
        if place is None:
            if self.signals is None and not self.closing:
                raise self.not_open()
            if self.accounting.observed:
                self.accounting.checked(key, 0, 0)
            return 0
        actions.level = TRYING
        try:
            completed = self._pass(key, place, limit)
        except BaseException:
            actions.level = IDLE
            actions.waiting = True
            actions.abort()
            raise
        actions.level = IDLE
        if actions.waiting:
            return completed + actions.go_on(IDLE)
        return completed

    def run_check(self, key: Hashable, limit: int) -> int:
        return self._pass(key, self.watchers.on(key), limit)

    def _check_signalled(self) -> None:
        actions = self.actions
        actions.ask_for_each(self, cast(Signals, self.signals).take())
        actions.resume()

    def _pass(self, key: Hashable, place: Any, limit: int) -> int:
        """Try the operations that watch `key`, from the first one at `place`, until `limit` have completed.

        Returns how many have. An operation that is parked during the pass does not belong to it.
        """
        newest = self.accounting.parked
        tried = completed = 0
        if isinstance(place, Chunk):
            chunk: Chunk | None = place
            while chunk is not None and completed != limit:
                _, tries, completions = self.try_chunk(chunk, 0, newest, inf, limit - completed)
                tried += tries
                completed += completions
                chunk = chunk.following
        elif place is not None:
            operation: Operation = place
            if operation._state is PENDING:
                tried = 1
                completed = 1 if self._try(operation) else 0
        if self.accounting.observed:
            self.accounting.checked(key, tried, completed)
        return completed

    def try_chunk(
        self, chunk: Chunk, after: int, newest: int, until: float, limit: int
    ) -> tuple[int, int, int]:
        """Try the operations of `chunk` with numbers above `after`, up to `newest`, until the time `until`.

        It stops when `limit` have completed. A negative limit is none. Returns the number of the operation at
        which the time ran out, else 0; how many were tried; and how many of these completed.
        """
        tried = completed = 0
        # A copy, because operations that end leave the chunk.
        for operation in chunk.operations.copy():
            number = operation._parked
            if number > newest:
                break
            # The hooks of an earlier operation may have ended this one.
            state: OperationState = operation._state
            if number > after and state is PENDING:
                tried += 1
                try:
                    done = self._try(operation)
                except BaseException:
                    if operation._state is COMPLETED:
                        completed += 1
                    if completed != limit:
                        # The operations behind it are still to be checked. (`ask` would hash the key. What
                        # that may raise would take the place of this exception.)
                        left = NO_LIMIT if limit < 0 else limit - completed
                        self.actions.add(self, chunk.key, left)
                    raise
                if done:
                    completed += 1
                    if completed == limit:
                        break
                if until != inf and self.timer.clock() >= until:
                    return number, tried, completed
        return 0, tried, completed

    def _try(self, operation: Operation) -> bool:
        """Try one operation of the key that is checked. Returns whether it is completed now."""
        hooks: Any = operation
        if self.accounting.observed:
            if self._debugger is not None:
                hooks = self._debugger.trying(operation)
            try:  # noqa: SIM105  # suppress() would take longer than all the rest of this
                operation._timing.tries += 1
            except AttributeError:
                # It was offered before the first observer came.
                pass
        try:
            tried: Any = hooks.try_complete()
        except BaseException as error:
            if self._try_failed(operation, error):
                raise
            return operation._state is COMPLETED
        if operation._state is COMPLETED:
            return True
        if tried is not False and operation._state is PENDING:
            failed_by(operation, tried)
        return False

    def _try_failed(self, operation: Operation, error: BaseException) -> bool:
        """`try_complete` raised, which ends this operation only. Returns whether `error` has to go up."""
        if not end(operation, FAILED, Failure(error)) and isinstance(error, Exception):
            self._reporter.report(f"{safe_repr(operation)} was done when its try_complete() raised", error)
        return not isinstance(error, Exception)

    # Ending

    def end(self, operation: Operation, state: OperationState, outcome: Failure | Given | None) -> None:
        debugger = self._debugger
        if debugger is not None:
            debugger.check_thread()
        actions = self.actions
        level = actions.level
        current = actions.current
        if current is not operation and (current is not None or level == WRITING):
            self._end_later(operation, state, outcome)
            return
        operation._state = state
        if outcome is not None:
            operation._outcome = outcome
        actions.current = operation
        raised: BaseException | None = None
        # Each step is left behind once it is done. When one raises, the queue calls this again to go on.
        try:
            if operation._parked:
                actions.level = WRITING
                self._forget(operation)
            actions.level = SETTLING
            if operation._outcome is NO_OUTCOME:
                raised = settle(operation) if debugger is None else debugger.settle(operation, self.closing)
            elif isinstance(operation._outcome, Given):
                given = operation._outcome
                if debugger is None:
                    raised = settle_given(operation, given)
                else:
                    raised = debugger.settle(operation, self.closing, given)
            if operation._waiters is not None:
                self._wake(operation, again=current is operation and actions.again)
            else:
                self.accounting.ended(operation)
        except BaseException:
            actions.level = level
            actions.waiting = True
            actions.abort()
            raise
        actions.current = None
        # An operation keeps an Exception. Any other BaseException, such as KeyboardInterrupt, goes up.
        if raised is not None and not isinstance(raised, Exception):
            actions.level = level
            actions.abort()
            raise raised
        actions.level = level
        if actions.waiting and level < SETTLING:
            actions.go_on(level)

    def _end_later(
        self, operation: Operation, state: OperationState, outcome: Failure | Given | None
    ) -> None:
        """Decide `operation` now. The call that is settling or writing, or the loop, does the rest."""
        actions = self.actions
        level = actions.level
        actions.defer(operation)
        operation._state = state
        if outcome is not None:
            operation._outcome = outcome
        if level == SETTLING and operation._parked:
            actions.level = WRITING
            try:
                self._forget(operation)
            finally:
                actions.level = level
        elif level < SETTLING:
            actions.go_on(level)

    def _forget(self, operation: Operation) -> None:
        """Remove a parked operation from the wheel and from its watch lists."""
        accounting = self.accounting
        pending = accounting.pending - 1
        if operation._bucket is not None:
            self.timer.remove(operation)
        problem = self.watchers.unwatch(operation)
        operation._parked = 0
        accounting.pending = pending
        if problem is not None:
            self.watchers.repair()
            if not isinstance(problem, Exception):
                raise problem
            message = f"a key of {safe_repr(operation)} raised, or has changed, since it was watched"
            self._reporter.report(message, problem)

    def _wake(self, operation: Operation, *, again: bool) -> None:
        failed = wake(operation, again=again)
        self.accounting.ended(operation)
        if failed is not None:
            for waiter, error in failed:
                self._reporter.report(f"{safe_repr(waiter)} could not be woken", error)

    def reschedule(self, operation: Operation, seconds: float) -> None:
        if self._debugger is not None:
            self._debugger.check_thread()
        actions = self.actions
        level = actions.level
        if level == WRITING:
            actions.defer(operation)
            operation._timeout = seconds
            return
        scheduled = False
        if seconds > 0:
            actions.level = WRITING
            deadline = operation._deadline
            try:
                scheduled = self.timer.reschedule(operation, seconds)
            except BaseException:
                actions.level = level
                if operation._deadline != deadline:
                    # It is rescheduled, and only what comes after that has raised.
                    operation._timeout = seconds
                raise
            actions.level = level
        else:
            operation._deadline = self.timer.clock()
        operation._timeout = seconds
        if not scheduled:
            end(operation, EXPIRED)
        if actions.waiting and level < SETTLING:
            actions.go_on(level)

    def is_closing(self) -> bool:
        return self.closing

    def withdraw(self, key: Hashable) -> list[Operation]:
        """Withdraw the operations that watch `key`, in order. Returns them."""
        if self._debugger is not None:
            self._debugger.check_thread()
        watching = self.watchers.watching(key)
        return [operation for operation in watching if end(operation, CANCELLED, BY_KEY)]

    def keys_of(self, operation: Operation) -> tuple[Hashable, ...]:
        return keys_at(operation._watched)

    def shut(self) -> None:
        """Take no more operations, and stop the timer."""
        self.open = False
        self.closing = True
        self.timer.stop()

    def drop_rest(self) -> None:
        """Forget what closing could not end: operations that a second `__init__` has reset, for example."""
        left = self.accounting.pending
        if left and self.actions.level == IDLE and not self.actions.waiting:
            self.watchers.clear()
            self.accounting.pending = 0
            self.report(
                f"purgatory {self.name!r} drops what it cannot end", RuntimeError(f"{left} operations")
            )

    def report(self, message: str, error: BaseException) -> None:
        """Report a failure of the purgatory itself."""
        self._reporter.report(message, error)
