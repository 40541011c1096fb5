"""Layer 4: checks of a key. The operations that watch it are tried, in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable
from math import inf
from typing import Any, final

from purgatory._core._mypyc import i64
from purgatory._core.action_queue import IDLE, TRYING
from purgatory._core.engine import Engine
from purgatory._core.operation import NO_LIMIT, Operation
from purgatory._core.outcome import COMPLETED, PENDING, OperationState
from purgatory._core.watch_list import Chunk
from purgatory.errors import own_error


@final
class Checker:
    """Tries the operations of one engine that watch a key, when somebody says that it has changed."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        # The keys that threads have signalled since the loop last looked, in the order of their first signal.
        self._signalled: dict[Hashable, None] = {}
        # Re-entrant, because the hash of a key, or a finalizer that runs at that moment, may signal itself.
        self._lock = threading.RLock()

    def signal(self, key: Hashable) -> None:
        """Have the loop check `key` soon. From any thread.

        However many signals come before the loop wakes, it wakes once and checks each key once.
        """
        engine = self.engine
        if engine.closing:
            return
        if engine.loop is None:
            raise engine.not_open()
        with self._lock:
            if not self._signalled:
                engine.loop.call_soon_threadsafe(self._check_signalled)
            # That call waits for the lock, so it finds this key.
            try:
                self._signalled[key] = None
            except asyncio.CancelledError as error:
                raise own_error(error, "a key") from error

    def _check_signalled(self) -> None:
        with self._lock:
            # One assignment, because a finalizer may signal in the middle of it.
            signalled, self._signalled = self._signalled, {}
        queue = self.engine.queue
        interruption: BaseException | None = None
        for key in signalled:
            try:
                queue.ask(self, key, NO_LIMIT)
            except BaseException as error:
                # The check is going to raise the same exception, which is then reported.
                queue.add(self, key, NO_LIMIT)
                if not isinstance(error, (Exception, asyncio.CancelledError)):
                    interruption = error
        queue.resume()
        if interruption is not None:
            raise interruption

    def check(self, key: Hashable, limit: i64 = NO_LIMIT) -> int:
        """Try the operations that watch `key`, until `limit` have completed, and run what hooks ask for."""
        engine = self.engine
        if engine.loop is None:
            if engine.closing:
                return 0
            raise engine.not_open()
        engine.check_thread()
        queue = engine.queue
        if queue.level:
            # Ask even if the key has no watchers now: the operation that is being tried may watch it soon.
            queue.ask(self, key, limit)
            return 0
        place = engine.watchers.on(key)
        if place is None:
            if engine.observed:
                engine.observers.checked(key, 0, 0)
            return 0
        queue.level = TRYING
        completed: i64 = 0
        whole = False
        try:
            completed = self.run(key, place, limit)
            whole = True
        finally:
            completed += queue.leave(IDLE, whole)
        return completed

    def run(self, key: Hashable, place: Any, limit: i64) -> int:
        """Try the operations that watch `key`, from the first one at `place`, until `limit` have completed.

        Returns how many have. An operation that is parked during the pass does not belong to it.
        """
        engine = self.engine
        newest = engine.parked
        tried: i64 = 0
        completed: i64 = 0
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
                completed = 1 if engine.try_pending(operation) else 0
        if engine.observed:
            engine.observers.checked(key, tried, completed)
        return completed

    def try_chunk(
        self, chunk: Chunk, after: i64, newest: i64, until: float, limit: i64
    ) -> tuple[i64, i64, i64]:
        """Try the operations of `chunk` with numbers above `after`, up to `newest`, until the time `until`.

        It stops when `limit` have completed. A negative limit is none. Returns the number of the operation at
        which the time ran out, else 0; how many were tried; and how many of these completed.
        """
        engine = self.engine
        tried: i64 = 0
        completed: i64 = 0
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
                    done = engine.try_pending(operation)
                except BaseException:
                    if operation._state is COMPLETED:
                        completed += 1
                    if completed != limit:
                        # Those behind it are still to be checked. (`ask` hashes the key, which may raise.)
                        engine.queue.add(self, chunk.key, NO_LIMIT if limit < 0 else limit - completed)
                    raise
                if done:
                    completed += 1
                    if completed == limit:
                        break
                if until != inf and engine.timer.clock() >= until:
                    return number, tried, completed
        return 0, tried, completed
