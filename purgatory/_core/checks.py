"""Layer 3: trying the operations of a key."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from math import inf
from typing import Any, cast, final

from purgatory._core.accounting import Accounting
from purgatory._core.action_queue import ActionQueue, Checker, action_queue_of
from purgatory._core.operation import COMPLETED, PENDING, Operation, OperationState, fail
from purgatory._core.reaper import Reaper
from purgatory._core.safe_repr import safe_repr
from purgatory._core.signals import Signals
from purgatory._core.timer import pause
from purgatory._core.watchers import Chunk, Watchers


@final
class Checks(Checker):
    """Tries the operations that watch a key, first come first, in passes.

    Operations parked during a pass are not of it. Operations that a pass ends leave their chunk, so it
    goes through a copy, and on to the chunks that follow then.
    """

    __slots__ = ("_accounting", "_loop", "_reaper", "_slice_seconds", "_watchers", "actions", "signals")

    def __init__(
        self, watchers: Watchers, accounting: Accounting, reaper: Reaper, slice_seconds: float
    ) -> None:
        self._watchers = watchers
        self._reaper = reaper
        self._accounting = accounting
        self._slice_seconds = slice_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self.actions = ActionQueue(None)
        # None until the purgatory is open.
        self.signals: Signals | None = None

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.actions = action_queue_of(loop)
        self.signals = Signals(loop, self._check_signalled)

    def check(self, key: Hashable) -> int:
        """A pass, and the checks that its hooks ask for. In a hook: at the end of the outermost call."""
        actions = self.actions
        if actions.depth:
            # Even if nobody watches it now: the operation that is just being tried may be about to.
            actions.ask(self, key)
            return 0
        place = self._watchers.on(key)
        if place is None:
            if self._accounting.observed:
                self._accounting.checked(key, 0, 0)
            return 0
        actions.depth = 1
        try:
            completed = self._pass(key, place)
        except BaseException:
            actions.abort()
            raise
        return completed + actions.leave()

    async def sweep(self, key: Hashable) -> int:
        """The same, in slices; where it is cut off, what is left is checked in the loop's next turn."""
        accounting = self._accounting
        limit = accounting.parked
        tried = completed = latest = 0
        place = self._watchers.on(key)
        actions = self.actions
        # In a hook it is left to the outermost call: an eager task would run it on the hook's stack.
        if actions.depth or not isinstance(place, Chunk):
            return self.check(key)
        chunk: Chunk | None = place
        while True:
            actions.depth += 1
            try:
                until = self._time() + self._slice_seconds
                while chunk is not None and self._time() < until:
                    latest, tries, completions = self._try_chunk(chunk, latest, limit, until)
                    tried += tries
                    completed += completions
                    if not latest:
                        chunk = chunk.following
            except BaseException:
                actions.abort()
                raise
            try:
                completed += actions.leave()
                if chunk is None:
                    break
                accounting.slices += 1
                await pause()
            except BaseException:
                # It was cancelled, or a check that a hook has asked for raised.
                if not self._reaper.closing:
                    cast(Signals, self.signals).signal(key)
                if accounting.observed:
                    accounting.checked(key, tried, completed)
                raise
        if accounting.observed:
            accounting.checked(key, tried, completed)
        return completed

    def _check_signalled(self) -> None:
        actions = self.actions
        actions.depth += 1
        for key in cast(Signals, self.signals).take():
            actions.ask(self, key)
        actions.leave()

    def run_check(self, key: Hashable) -> int:
        return self._pass(key, self._watchers.on(key))

    def _pass(self, key: Hashable, place: Operation | Chunk | None) -> int:
        """Try all that watch `key`, where the first of them is at `place`; how many completed."""
        limit = self._accounting.parked
        tried = completed = 0
        if isinstance(place, Chunk):
            chunk: Chunk | None = place
            while chunk is not None:
                _, tries, completions = self._try_chunk(chunk, 0, limit, inf)
                tried += tries
                completed += completions
                chunk = chunk.following
        elif place is not None:
            tried = 1
            completed = 1 if self._try(place, key) else 0
        if self._accounting.observed:
            self._accounting.checked(key, tried, completed)
        return completed

    def _try_chunk(self, chunk: Chunk, after: int, limit: int, until: float) -> tuple[int, int, int]:
        """Try the operations of one chunk parked after number `after`, up to `limit`, until a loop's time.

        Returns the number of the last one tried when the time ran out, else 0; how many were tried; and how
        many of them completed.
        """
        tried = completed = 0
        for operation in chunk.operations.copy():
            number = operation._parked
            if number > limit:
                break
            # The hooks of those before it may have ended it.
            state: OperationState = operation._state
            if number > after and state is PENDING:
                tried += 1
                if self._try(operation, chunk.key):
                    completed += 1
                if until != inf and self._time() >= until:
                    return number, tried, completed
        return 0, tried, completed

    def _try(self, operation: Operation, key: Hashable) -> bool:
        """Try one that watches `key`; whether it is completed now."""
        if self._accounting.observed:
            try:  # noqa: SIM105  # suppress() would take longer than all the rest of this
                operation._timing.tries += 1
            except AttributeError:
                # Offered before there was an observer.
                pass
        hooks: Any = operation
        try:
            hooks.try_complete()
        except BaseException as error:
            if self.failed(operation, error):
                # Those behind it have still to be checked.
                self.actions.ask(self, key)
                raise
        return operation._state is COMPLETED

    def failed(self, operation: Operation, error: BaseException) -> bool:
        """`try_complete` raised: that ends this operation and no other. Whether `error` has to go up."""
        if not fail(operation, error) and isinstance(error, Exception):
            self._accounting.report(f"{safe_repr(operation)} was done when its try_complete() raised", error)
        return not isinstance(error, Exception)

    def _time(self) -> float:
        return cast(asyncio.AbstractEventLoop, self._loop).time()
