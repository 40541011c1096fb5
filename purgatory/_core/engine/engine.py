"""Layer 4: offering, checking, ending and accounting."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from purgatory._core.engine.accounting import Accounting
from purgatory._core.engine.action_queue import ActionQueue, action_queue_of
from purgatory._core.engine.failures import FailureReporter
from purgatory._core.engine.signals import Signals
from purgatory._core.operation import (
    COMPLETED,
    EXPIRED,
    FAILED,
    NEW,
    PENDING,
    Operation,
    OperationState,
    Owner,
    Timing,
    end,
    settle,
)
from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer import Timer
from purgatory._core.watchers import Chunk, Watchers, hashable_keys, keys_at
from purgatory.errors import PurgatoryClosed, PurgatoryFull, PurgatoryNotOpen

if TYPE_CHECKING:
    from purgatory.observer import Observer

Op = TypeVar("Op", bound=Operation)


@final
class Engine(Owner):
    """Parks operations, checks their keys and ends them. An operation is wholly parked or not at all.

    Every method that may run hooks adds 1 to the depth of the action queue first. It ends with `leave`, or
    with `abort` when it raises. No await is in here, so nothing else runs in the middle of a method, but for
    hooks and the methods of users' keys.
    """

    __slots__ = (
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
    ) -> None:
        if max_pending is not None and max_pending < 1:
            raise ValueError(f"max_pending must be at least 1, or None for no limit, not {max_pending!r}")
        self.name = name
        self.timer = timer
        self.watchers = Watchers()
        self.slice_seconds = slice_seconds
        self._max_pending = max_pending
        self._reporter = FailureReporter(name)
        self.accounting = Accounting(name, timer, self._reporter, observers)
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
        self._reporter.open_on(loop)
        self.actions = action_queue_of(loop)
        self.signals = Signals(loop, self._check_signalled)
        self.open = True

    # Offering

    def offer(self, operation: Op, keys: Iterable[Hashable]) -> Op:
        """Try `operation` once. If its condition does not hold, park it on `keys` until its timeout."""
        given = hashable_keys(keys)
        if not self.open:
            raise self._not_open()
        try:
            if operation._state is not NEW or operation._owner is not None:
                offered = safe_repr(operation)
                raise RuntimeError(f"{offered} was offered before: make a new operation for each wait")
        except AttributeError:
            made = type(operation).__name__
            raise TypeError(f"{made}.__init__ must call super().__init__(timeout)") from None
        operation._owner = self
        operation._watched = given
        if self.accounting.observed:
            timing = Timing()
            timing.offered = self.timer.clock()
            timing.tries = 1
            operation._timing = timing
        actions = self.actions
        depth = actions.depth
        actions.depth = depth + 1
        # Any: the return value of an override does not matter, because the state tells what happened.
        hooks: Any = operation
        try:
            try:
                hooks.try_complete()
            except BaseException as error:
                if self._try_failed(operation, error):
                    raise
            if operation._state is NEW:
                self._park(operation, given)
        except Exception:
            # The purgatory is full, or a key could not be compared: nothing is kept of the operation.
            operation._owner = None
            operation._watched = ()
            actions.leave()
            raise
        except BaseException:
            actions.abort()
            raise
        if depth == 0 and actions.checks:
            actions.leave()
        else:
            actions.depth = depth
        return operation

    def _not_open(self) -> PurgatoryClosed:
        if self.closing:
            return PurgatoryClosed(f"purgatory {self.name!r} has been closed")
        return PurgatoryNotOpen(f"purgatory {self.name!r} is not open: use `async with`, or start() it")

    def _park(self, operation: Operation, keys: tuple[Hashable, ...]) -> None:
        """Put `operation` on the wheel and on the watch lists of its keys, or on none of them."""
        timeout = operation._timeout
        accounting = self.accounting
        # The operation may have been tried by an eager task that closed the purgatory.
        if timeout <= 0 or not self.open:
            end(operation, EXPIRED)
            return
        if self._max_pending is not None and accounting.pending >= self._max_pending:
            raise PurgatoryFull(f"purgatory {self.name!r} holds {accounting.pending} operations already")
        if timeout != inf and not self.timer.add(operation, timeout):
            end(operation, EXPIRED)
            return
        try:
            self.watchers.watch(operation, keys)
        except BaseException:
            self.timer.remove(operation)
            raise
        if operation._state is not NEW:
            # The comparison of two keys ran a user's code, which has ended the operation.
            self.watchers.unwatch(operation)
            self.timer.remove(operation)
            return
        operation._parked = accounting.parked = accounting.parked + 1
        operation._state = PENDING
        accounting.pending += 1

    # Checking

    def check(self, key: Hashable) -> int:
        """Try the operations that watch `key`, and run the checks that their hooks ask for."""
        actions = self.actions
        if actions.depth:
            # Ask even if the key has no watchers now: the operation that is being tried may watch it soon.
            actions.ask(self, key)
            return 0
        place = self.watchers.on(key)
        if place is None:
            if self.accounting.observed:
                self.accounting.checked(key, 0, 0)
            return 0
        actions.depth = 1
        try:
            completed = self._pass(key, place)
        except BaseException:
            actions.abort()
            raise
        return completed + actions.leave()

    def run_check(self, key: Hashable) -> int:
        return self._pass(key, self.watchers.on(key))

    def _check_signalled(self) -> None:
        actions = self.actions
        actions.depth += 1
        for key in cast(Signals, self.signals).take():
            actions.ask(self, key)
        actions.leave()

    def _pass(self, key: Hashable, place: Operation | Chunk | None) -> int:
        """Try all operations that watch `key`, from the first one at `place`. Returns how many completed.

        An operation that is parked during the pass does not belong to it.
        """
        newest = self.accounting.parked
        tried = completed = 0
        if isinstance(place, Chunk):
            chunk: Chunk | None = place
            while chunk is not None:
                _, tries, completions = self.try_chunk(chunk, 0, newest, inf)
                tried += tries
                completed += completions
                chunk = chunk.following
        elif place is not None:
            tried = 1
            completed = 1 if self._try(place, key) else 0
        if self.accounting.observed:
            self.accounting.checked(key, tried, completed)
        return completed

    def try_chunk(self, chunk: Chunk, after: int, newest: int, until: float) -> tuple[int, int, int]:
        """Try the operations of `chunk` with numbers above `after`, up to `newest`, until the time `until`.

        Returns the number of the operation at which the time ran out, else 0; how many were tried; and how
        many of these completed.
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
                if self._try(operation, chunk.key):
                    completed += 1
                if until != inf and self.timer.clock() >= until:
                    return number, tried, completed
        return 0, tried, completed

    def _try(self, operation: Operation, key: Hashable) -> bool:
        """Try one operation that watches `key`. Returns whether it is completed now."""
        if self.accounting.observed:
            try:  # noqa: SIM105  # suppress() would take longer than all the rest of this
                operation._timing.tries += 1
            except AttributeError:
                # It was offered before the first observer came.
                pass
        hooks: Any = operation
        try:
            hooks.try_complete()
        except BaseException as error:
            if self._try_failed(operation, error):
                # The operations behind it are still to be checked.
                self.actions.ask(self, key)
                raise
        return operation._state is COMPLETED

    def _try_failed(self, operation: Operation, error: BaseException) -> bool:
        """`try_complete` raised, which ends this operation only. Returns whether `error` has to go up."""
        if not end(operation, FAILED, error) and isinstance(error, Exception):
            self._reporter.report(f"{safe_repr(operation)} was done when its try_complete() raised", error)
        return not isinstance(error, Exception)

    # Ending

    def end(self, operation: Operation, error: BaseException | None) -> None:
        actions = self.actions
        depth = actions.depth
        actions.depth = depth + 1
        try:
            if operation._parked:
                self.watchers.unwatch(operation)
                if operation._bucket is not None:
                    self.timer.remove(operation)
                self.accounting.pending -= 1
            raised = settle(operation, error)
            operation._owner = None
            self.accounting.ended(operation)
            # An operation keeps an Exception. Any other BaseException, such as KeyboardInterrupt, goes up.
            if raised is not None and not isinstance(raised, Exception):
                raise raised
        except BaseException:
            actions.abort()
            raise
        if depth == 0 and actions.checks:
            actions.leave()
        else:
            actions.depth = depth

    def reschedule(self, operation: Operation) -> None:
        if operation._timeout <= 0 or not self.timer.reschedule(operation, operation._timeout):
            end(operation, EXPIRED)

    def keys_of(self, operation: Operation) -> tuple[Hashable, ...]:
        return keys_at(operation._watched)

    def fail_all(self, error: Exception) -> None:
        """Close at once, and end everything that is pending as FAILED with `error`."""
        self.shut()
        for operation in self.watchers.operations():
            end(operation, FAILED, error)

    def shut(self) -> None:
        """Take no more operations, and stop the timer."""
        self.open = False
        self.closing = True
        self.timer.stop()

    def report(self, message: str, error: BaseException) -> None:
        """Report a failure of the purgatory itself."""
        self._reporter.report(message, error)
