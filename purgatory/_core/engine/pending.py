"""The operations that a purgatory holds: they are parked, rescheduled and ended here."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from math import inf
from typing import TYPE_CHECKING, Any, Final, final

from purgatory._core.engine.accounting import Accounting
from purgatory._core.engine.action_queue import SETTLING, WRITING, ActionQueue
from purgatory._core.engine.failures import FailureReporter
from purgatory._core.engine.mistakes import Debugger
from purgatory._core.operation import Operation, Owner, end, settle, wake
from purgatory._core.outcome import BY_WAITER, EXPIRED, FAILED, NEW, PENDING, Failure, Given, OperationState
from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer import Timer
from purgatory._core.watchers import Watchers, first_watched, keys_at
from purgatory.errors import PurgatoryClosed, PurgatoryFull, PurgatoryNotOpen

if TYPE_CHECKING:
    from purgatory.observer import KeyObserver

# More operations than fit into any memory. Compiled, a number up to this is no object.
NO_MAXIMUM: Final = 1 << 61


@final
class PendingOperations(Owner):
    """Parks, reschedules and ends the operations of one purgatory. One is wholly parked or not at all.

    An operation is decided before anything else happens to it. Then it leaves every book, whatever raises.
    The books are the timer, the watch lists and the accounting.
    """

    __slots__ = (
        "_accounting",
        "_max_pending",
        "_name",
        "_reporter",
        "_timer",
        "_watchers",
        "actions",
        "closing",
        "debugger",
        "key_observer",
        "latecomers",
        "open",
    )

    def __init__(
        self,
        name: str,
        timer: Timer,
        watchers: Watchers,
        accounting: Accounting,
        reporter: FailureReporter,
        max_pending: int | None,
    ) -> None:
        if max_pending is not None and max_pending < 1:
            raise ValueError(f"max_pending must be at least 1, or None for no limit, not {max_pending!r}")
        self.loop = None
        self.evaluations = set()
        self._name = name
        self._timer = timer
        self._watchers = watchers
        self._accounting = accounting
        self._reporter = reporter
        # Compiled, a None among the numbers would make each of them an object.
        self._max_pending = NO_MAXIMUM if max_pending is None else min(max_pending, NO_MAXIMUM)
        # The queue of the loop, once it is open.
        self.actions = ActionQueue(None)
        # Only in debug mode there is one.
        self.debugger: Debugger | None = None
        # Told of the first and of the last watcher of each key.
        self.key_observer: KeyObserver | None = None
        # Whether it takes operations.
        self.open = False
        # Whether it is closing or closed, and never takes operations again.
        self.closing = False
        # How many operations have been offered since, and before it was open.
        self.latecomers = 0

    def open_on(
        self, loop: asyncio.AbstractEventLoop, actions: ActionQueue, debugger: Debugger | None
    ) -> None:
        """Take operations from now on."""
        self.loop = loop
        self.actions = actions
        self.debugger = debugger
        self.open = True

    @property
    def max_pending(self) -> int | None:
        """How many operations may wait. None means that there is no limit."""
        return None if self._max_pending == NO_MAXIMUM else self._max_pending

    def not_open(self) -> PurgatoryClosed:
        """The error of a call that comes too early or too late."""
        if self.closing:
            return PurgatoryClosed(f"purgatory {self._name!r} has been closed")
        return PurgatoryNotOpen(f"purgatory {self._name!r} is not open: use `async with`, or start() it")

    def place(self, operation: Operation, keys: tuple[Hashable, ...]) -> None:
        """Put `operation` on the wheel and on the watch lists of its keys, or on none of them.

        The caller goes back to its own level.
        """
        timeout = operation._timeout
        accounting = self._accounting
        # The operation may have been tried by an eager task that closed the purgatory.
        if timeout <= 0 or not self.open:
            end(operation, EXPIRED)
            return
        # A number is an object, too. So these are made before anything changes.
        number = accounting.parked + 1
        pending = accounting.pending + 1
        if pending > self._max_pending:
            accounting.refused += 1
            raise PurgatoryFull(f"purgatory {self._name!r} holds {accounting.pending} operations already")
        actions = self.actions
        level = actions.level
        actions.level = WRITING
        try:
            if timeout == inf:
                # The timer refuses it where it has a timeout.
                if operation._bucket is not None:
                    offered = safe_repr(operation)
                    raise RuntimeError(f"{offered} is in a timing wheel already: remove it there first")
            elif not self._timer.schedule(operation, timeout):
                actions.level = level
                end(operation, EXPIRED)
                return
            self._watchers.watch(operation, keys)
            if self.key_observer is not None:
                try:
                    self._tell_watched(operation)
                except BaseException:
                    # Here and not in that method, because there may be no stack left for another call.
                    self._watchers.unwatch(operation)
                    self._watchers.repair()
                    self._tell_left(operation)
                    raise
        except BaseException:
            if operation._bucket is not None:
                self._timer.remove(operation)
            raise
        if operation._state is NEW:
            accounting.parked = number
            accounting.pending = pending
            operation._parked = number
            operation._state = PENDING
        else:
            # The methods of a key, or a finalizer, have ended it meanwhile. What is left of that is deferred.
            if operation._bucket is not None:
                self._timer.remove(operation)
            self._watchers.unwatch(operation)
            self._watchers.repair()
            if self.key_observer is not None:
                self._tell_left(operation)

    def _tell_watched(self, operation: Operation) -> None:
        """Tell the observer of the keys that only this operation watches."""
        observer: Any = self.key_observer
        for key in first_watched(operation._watched):
            observer.key_watched(key)

    def _tell_left(self, operation: Operation) -> None:
        """Tell the observer of the keys whose last watcher was the operation."""
        observer: Any = self.key_observer
        for key in keys_at(operation._watched):
            try:
                if key not in self._watchers:
                    observer.key_left(key)
            except Exception as error:
                message = f"{safe_repr(observer)} could not be told that nobody watches {safe_repr(key)}"
                self._reporter.report(message, error)

    def park(self, operation: Operation) -> None:
        actions = self.actions
        level = actions.level
        try:
            self.place(operation, operation._watched)
        except Exception as error:
            actions.level = level
            # The call that offered it has returned already.
            end(operation, FAILED, Failure(error))
        actions.level = level

    def end(self, operation: Operation, state: OperationState, outcome: Failure | Given | None) -> None:
        debugger = self.debugger
        # A task that abandons the operation runs in the thread of the loop. What raised here would keep the
        # operation, which nobody awaits any more.
        if debugger is not None and outcome is not BY_WAITER:
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
            raised = settle(operation) if debugger is None else debugger.settle(operation, self.closing)
            if operation._waiters is not None:
                self._wake(operation, again=current is operation and actions.again)
            else:
                self._accounting.ended(operation)
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
        accounting = self._accounting
        pending = accounting.pending - 1
        if operation._bucket is not None:
            self._timer.remove(operation)
        problem = self._watchers.unwatch(operation)
        operation._parked = 0
        accounting.pending = pending
        if self.key_observer is not None:
            self._tell_left(operation)
        if problem is not None:
            self._watchers.repair()
            if not isinstance(problem, Exception):
                raise problem
            message = f"a key of {safe_repr(operation)} raised, or has changed, since it was watched"
            self._reporter.report(message, problem)

    def _wake(self, operation: Operation, *, again: bool) -> None:
        failed = wake(operation, again=again)
        self._accounting.ended(operation)
        if failed is not None:
            for waiter, error in failed:
                self._reporter.report(f"{safe_repr(waiter)} could not be woken", error)

    def reschedule(self, operation: Operation, seconds: float) -> None:
        if self.debugger is not None:
            self.debugger.check_thread()
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
                scheduled = self._timer.reschedule(operation, seconds)
            except BaseException:
                actions.level = level
                if operation._deadline != deadline:
                    # It is rescheduled, and only what comes after that has raised.
                    operation._timeout = seconds
                raise
            actions.level = level
        else:
            operation._deadline = self._timer.clock()
        operation._timeout = seconds
        if not scheduled:
            end(operation, EXPIRED)
        if actions.waiting and level < SETTLING:
            actions.go_on(level)

    def is_closing(self) -> bool:
        return self.closing

    def keys_of(self, operation: Operation) -> tuple[Hashable, ...]:
        return keys_at(operation._watched)

    def shut(self) -> None:
        """Take no more operations."""
        self.open = False
        self.closing = True
