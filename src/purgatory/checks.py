"""Layer 3: trying the operations of a key."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from math import inf
from typing import Any, cast, final

from purgatory.action_queue import ActionQueue, Checker, action_queue_of
from purgatory.description import described
from purgatory.ledger import Ledger
from purgatory.operation import COMPLETED, PENDING, Operation, OperationState, fail
from purgatory.reaper import Reaper
from purgatory.signals import Signals
from purgatory.timer import pause
from purgatory.watchers import Stretch, Watchers


@final
class Checks(Checker):
    """Tries the operations that watch a key, first come first, in passes.

    Operations parked during a pass are not of it. Operations that a pass ends leave their stretch, so it
    goes through a copy, and on to the stretches that follow then.
    """

    __slots__ = ("_ledger", "_loop", "_reaper", "_slice_seconds", "_watchers", "actions", "signals")

    def __init__(self, watchers: Watchers, ledger: Ledger, reaper: Reaper, slice_seconds: float) -> None:
        self._watchers = watchers
        self._reaper = reaper
        self._ledger = ledger
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
            if self._ledger.observed:
                self._ledger.checked(key, 0, 0)
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
        ledger = self._ledger
        limit = ledger.parked
        tried = completed = latest = 0
        place = self._watchers.on(key)
        actions = self.actions
        # In a hook it is left to the outermost call: an eager task would run it on the hook's stack.
        if actions.depth or not isinstance(place, Stretch):
            return self.check(key)
        stretch: Stretch | None = place
        while True:
            actions.depth += 1
            try:
                until = self._time() + self._slice_seconds
                while stretch is not None and self._time() < until:
                    latest, tries, completions = self._try_stretch(stretch, latest, limit, until)
                    tried += tries
                    completed += completions
                    if not latest:
                        stretch = stretch.following
            except BaseException:
                actions.abort()
                raise
            try:
                completed += actions.leave()
                if stretch is None:
                    break
                ledger.slices += 1
                await pause()
            except BaseException:
                # It was cancelled, or a check that a hook has asked for raised.
                if not self._reaper.closing:
                    cast(Signals, self.signals).signal(key)
                if ledger.observed:
                    ledger.checked(key, tried, completed)
                raise
        if ledger.observed:
            ledger.checked(key, tried, completed)
        return completed

    def _check_signalled(self) -> None:
        actions = self.actions
        actions.depth += 1
        for key in cast(Signals, self.signals).take():
            actions.ask(self, key)
        actions.leave()

    def run_check(self, key: Hashable) -> int:
        return self._pass(key, self._watchers.on(key))

    def _pass(self, key: Hashable, place: Operation | Stretch | None) -> int:
        """Try all that watch `key`, where the first of them is at `place`; how many completed."""
        limit = self._ledger.parked
        tried = completed = 0
        if isinstance(place, Stretch):
            stretch: Stretch | None = place
            while stretch is not None:
                _, tries, completions = self._try_stretch(stretch, 0, limit, inf)
                tried += tries
                completed += completions
                stretch = stretch.following
        elif place is not None:
            tried = 1
            completed = 1 if self._try(place, key) else 0
        if self._ledger.observed:
            self._ledger.checked(key, tried, completed)
        return completed

    def _try_stretch(self, stretch: Stretch, after: int, limit: int, until: float) -> tuple[int, int, int]:
        """Try the operations of one stretch parked after number `after`, up to `limit`, until a loop's time.

        Returns the number of the last one tried when the time ran out, else 0; how many were tried; and how
        many of them completed.
        """
        tried = completed = 0
        for operation in stretch.operations.copy():
            number = operation._parked
            if number > limit:
                break
            # The hooks of those before it may have ended it.
            state: OperationState = operation._state
            if number > after and state is PENDING:
                tried += 1
                if self._try(operation, stretch.key):
                    completed += 1
                if until != inf and self._time() >= until:
                    return number, tried, completed
        return 0, tried, completed

    def _try(self, operation: Operation, key: Hashable) -> bool:
        """Try one that watches `key`; whether it is completed now."""
        if self._ledger.observed:
            try:  # noqa: SIM105  # suppress() would take longer than all the rest of this
                operation._stay.tries += 1
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
            self._ledger.report(f"{described(operation)} was done when its try_complete() raised", error)
        return not isinstance(error, Exception)

    def _time(self) -> float:
        return cast(asyncio.AbstractEventLoop, self._loop).time()
