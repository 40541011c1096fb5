"""Checks of a key: the operations that watch it are tried, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from math import inf
from typing import Any, cast, final

from purgatory._core.engine.accounting import Accounting
from purgatory._core.engine.action_queue import IDLE, TRYING, ActionQueue, CheckOwner
from purgatory._core.engine.failures import FailureReporter
from purgatory._core.engine.mistakes import Debugger, failed_by
from purgatory._core.engine.pending import PendingOperations
from purgatory._core.engine.signals import Signals
from purgatory._core.operation import NO_LIMIT, Operation
from purgatory._core.outcome import COMPLETED, PENDING, OperationState
from purgatory._core.timer import Timer
from purgatory._core.watch_list import Chunk
from purgatory._core.watchers import Watchers


@final
class Checker(CheckOwner):
    """Tries the operations of one purgatory that watch a key.

    A check that is asked for in a hook waits in the action queue, which calls `run_check` later.
    """

    __slots__ = (
        "_accounting",
        "_actions",
        "_debugger",
        "_pending",
        "_reporter",
        "_signals",
        "_timer",
        "_watchers",
    )

    def __init__(
        self,
        timer: Timer,
        watchers: Watchers,
        accounting: Accounting,
        reporter: FailureReporter,
        pending: PendingOperations,
    ) -> None:
        self._timer = timer
        self._watchers = watchers
        self._accounting = accounting
        self._reporter = reporter
        self._pending = pending
        # The queue of the loop, once it is open.
        self._actions = ActionQueue(None)
        # Only in debug mode there is one.
        self._debugger: Debugger | None = None
        # None until it is open.
        self._signals: Signals | None = None

    def open_on(
        self, loop: asyncio.AbstractEventLoop, actions: ActionQueue, debugger: Debugger | None
    ) -> None:
        """Take checks from now on, and signals of other threads to `loop`."""
        self._actions = actions
        self._debugger = debugger
        self._signals = Signals(loop, self._check_signalled)

    def signal(self, key: Hashable) -> None:
        """Have the loop check `key` soon. From any thread."""
        if self._pending.closing:
            return
        if self._signals is None:
            raise self._pending.not_open()
        self._signals.signal(key)

    def check(self, key: Hashable, limit: int = NO_LIMIT) -> int:
        """Try the operations that watch `key`, until `limit` have completed, and run what hooks ask for."""
        if self._debugger is not None:
            self._debugger.check_thread()
        actions = self._actions
        if actions.level:
            # Ask even if the key has no watchers now: the operation that is being tried may watch it soon.
            actions.ask(self, key, limit)
            return 0
        place = self._watchers.on(key)
        if place is None:
            if self._signals is None and not self._pending.closing:
                raise self._pending.not_open()
            if self._accounting.observed:
                self._accounting.checked(key, 0, 0)
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
        return self._pass(key, self._watchers.on(key), limit)

    def _check_signalled(self) -> None:
        actions = self._actions
        actions.ask_for_each(self, cast(Signals, self._signals).take())
        actions.resume()

    def _pass(self, key: Hashable, place: Any, limit: int) -> int:
        """Try the operations that watch `key`, from the first one at `place`, until `limit` have completed.

        Returns how many have. An operation that is parked during the pass does not belong to it.
        """
        newest = self._accounting.parked
        tried = completed = 0
        if isinstance(place, Chunk):
            chunk: Chunk | None = place
            while chunk is not None and completed != limit:
                _number, tries, completions = self.try_chunk(chunk, 0, newest, inf, limit - completed)
                tried += tries
                completed += completions
                chunk = chunk.following
        elif place is not None:
            operation: Operation = place
            if operation._state is PENDING:
                tried = 1
                completed = 1 if self._try(operation) else 0
        if self._accounting.observed:
            self._accounting.checked(key, tried, completed)
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
                        self._actions.add(self, chunk.key, left)
                    raise
                if done:
                    completed += 1
                    if completed == limit:
                        break
                if until != inf and self._timer.clock() >= until:
                    return number, tried, completed
        return 0, tried, completed

    def _try(self, operation: Operation) -> bool:
        """Try one operation of the key that is checked. Returns whether it is completed now."""
        hooks: Any = operation
        if self._accounting.observed:
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
            if self._reporter.try_failed(operation, error):
                raise
            return operation._state is COMPLETED
        if operation._state is COMPLETED:
            return True
        if tried is not False and operation._state is PENDING:
            failed_by(operation, tried)
        return False

    def report(self, message: str, error: BaseException) -> None:
        self._reporter.report(message, error)
