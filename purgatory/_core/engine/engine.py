"""Layer 4: what a purgatory is made of, and the offer of an operation."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, final

from purgatory._core.engine.accounting import Accounting
from purgatory._core.engine.action_queue import (
    IDLE,
    SETTLING,
    TRYING,
    WRITING,
    ActionQueue,
    action_queue_of,
)
from purgatory._core.engine.checker import Checker
from purgatory._core.engine.failures import FailureReporter
from purgatory._core.engine.mistakes import Debugger, failed_by, has_no_condition
from purgatory._core.engine.pending import PendingOperations
from purgatory._core.operation import Operation, end
from purgatory._core.outcome import BY_KEY, CANCELLED, NEW, Timing
from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer import Timer
from purgatory._core.watchers import Watchers, hashable_keys
from purgatory.errors import PurgatoryClosed

if TYPE_CHECKING:
    from purgatory.observer import Observer

Op = TypeVar("Op", bound=Operation)


@final
class Engine:
    """Tries the operations that are offered, and has those parked that have to wait.

    No await is in the core. In the middle of a method nothing else runs but a user's code: hooks, methods of
    keys, and finalizers. What that code asks for waits in the action queue where it would disturb (see the
    levels there).
    """

    __slots__ = (
        "_debug",
        "_reporter",
        "accounting",
        "actions",
        "checker",
        "name",
        "pending",
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
        self.name = name
        self.timer = timer
        self.slice_seconds = slice_seconds
        # None means: as the loop does.
        self._debug = debug
        self._reporter = reporter = FailureReporter(name)
        self.watchers = watchers = Watchers()
        self.accounting = accounting = Accounting(name, timer, reporter, observers)
        self.pending = PendingOperations(name, timer, watchers, accounting, reporter, max_pending)
        self.checker = Checker(timer, watchers, accounting, reporter, self.pending)
        # The queue of the loop, once the engine is open.
        self.actions = ActionQueue(None)

    @property
    def open(self) -> bool:
        """Whether it takes operations."""
        return self.pending.open

    @property
    def closing(self) -> bool:
        """Whether it is closing or closed, and never takes operations again."""
        return self.pending.closing

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take operations from now on. Raises RuntimeError when open, PurgatoryClosed when closed."""
        if self.closing:
            raise PurgatoryClosed(f"purgatory {self.name!r} has been closed: make a new one")
        if self.open:
            raise RuntimeError(f"purgatory {self.name!r} is open already")
        self.timer.start(loop)
        self._reporter.open_on(loop)
        self.actions = action_queue_of(loop)
        debugger: Debugger | None = None
        if loop.get_debug() if self._debug is None else self._debug:
            debugger = Debugger(loop, self._reporter)
            # The debugger wants to know how often each operation was tried.
            self.accounting.observed = True
        self.checker.open_on(loop, self.actions, debugger)
        self.pending.open_on(loop, self.actions, debugger)

    def offer(self, operation: Op, keys: Iterable[Hashable]) -> Op:
        """Try `operation` once. If its condition does not hold, park it on `keys` until its timeout."""
        given = hashable_keys(keys)
        pending = self.pending
        if not pending.open:
            pending.latecomers += 1
            raise pending.not_open()
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
            debugger = pending.debugger
            if debugger is not None:
                debugger.check_thread()
                debugger.check_fields(operation)
                hooks = debugger.trying(operation)
        operation._owner = pending
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
                if self._reporter.try_failed(operation, error):
                    raise
            if operation._state is NEW:
                if tried is not False and failed_by(operation, tried):
                    pass
                elif level == WRITING:
                    actions.defer(operation)
                else:
                    pending.place(operation, given)
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

    def withdraw(self, key: Hashable) -> list[Operation]:
        """Withdraw the operations that watch `key`, in order. Returns them."""
        debugger = self.pending.debugger
        if debugger is not None:
            debugger.check_thread()
        watching = self.watchers.watching(key)
        return [operation for operation in watching if end(operation, CANCELLED, BY_KEY)]

    def shut(self) -> None:
        """Take no more operations, and stop the timer."""
        self.pending.shut()
        self.timer.stop()

    def drop_rest(self) -> None:
        """Forget what closing could not end: an operation whose private state somebody has overwritten."""
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
