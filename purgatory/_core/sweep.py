"""Layer 4: a check of one key in slices, between which the event loop runs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast, final

from purgatory._core._mypyc import i64
from purgatory._core.action_queue import IDLE, TRYING
from purgatory._core.checker import Checker
from purgatory._core.operation import NO_LIMIT
from purgatory._core.watch_list import Chunk


@final
class Sweep:
    """A check of one key in slices. It tries the operations that were parked when it was made."""

    def __init__(self, checker: Checker, key: Hashable) -> None:
        self._checker = checker
        self._engine = engine = checker.engine
        self._key = key
        # Where the next slice goes on: in this chunk, after the operation of this number. None at the end.
        self._chunk: Chunk | None = None
        self._after: i64 = 0
        # The first chunk of the list. It stays as long as there is anything left to try.
        self._first: Chunk | None = None
        # The number of the operation that was parked last.
        self._newest: i64 = engine.parked
        self._tried: i64 = 0
        self.completed: i64 = 0
        place = engine.watchers.on(key)
        # In a hook it is the outermost call's work. An eager task would run it on the hook's stack.
        if isinstance(place, Chunk) and engine.queue.level == IDLE:
            engine.check_thread()
            self._chunk = self._first = place
        else:
            self.completed = checker.check(key)

    def step(self, seconds: float) -> bool:
        """Run a slice of so many seconds. Returns whether there is more to do."""
        begin = self._chunk  # mypy would take the field for a chunk in all of this.
        if begin is None:
            return False
        engine = self._engine
        queue = engine.queue
        level = queue.level
        queue.level = max(level, TRYING)
        whole = False
        try:
            until = engine.timer.clock() + seconds
            while self._chunk is not None:
                self._after, tried, completed = self._checker.try_chunk(
                    self._chunk, self._after, self._newest, until, NO_LIMIT
                )
                self._tried += tried
                self.completed += completed
                if self._after:
                    break
                self._chunk = self._chunk.following
            whole = True
        finally:
            if not whole:
                # A hook has raised. The checker has asked for another check of the key.
                self._chunk = None
            self.completed += queue.leave(level, whole)
        if self._chunk is None:
            self._tell()
            return False
        engine.slices += 1
        return True

    def newcomers(self) -> int:
        """How many operations watch the key that were parked since the sweep began. O(newcomers)."""
        first = cast(Chunk, self._first)
        chunk = first.previous or first
        count = 0
        # From the end of the list, where they are.
        while chunk.operations and chunk.operations[-1]._parked > self._newest:
            count += len([each for each in chunk.operations if each._parked > self._newest])
            if chunk is first:
                break
            chunk = cast(Chunk, chunk.previous)
        return count

    def abandon(self) -> None:
        """The task that sweeps is cancelled, or a hook raised: the loop checks the rest in its next turn."""
        if self._chunk is not None:
            self._chunk = None
            if not self._engine.closing:
                # (`signal` would hash the key. What that may raise would take the place of the cancellation.)
                queue = self._engine.queue
                queue.add(self._checker, self._key, NO_LIMIT)
                queue.leave(queue.level, whole=False)
            self._tell()

    def _tell(self) -> None:
        if self._engine.observed:
            self._engine.observers.checked(self._key, self._tried, self.completed)
