"""Work on many operations that stops after each slice, so that the event loop can run."""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import cast, final

from purgatory._core._mypyc import i64
from purgatory._core.action_queue import IDLE, TRYING
from purgatory._core.checker import Checker
from purgatory._core.engine import Engine
from purgatory._core.operation import NO_LIMIT, Operation, end
from purgatory._core.outcome import CANCELLED, Failure, Given, OperationState
from purgatory._core.watch_list import Chunk, operations_at


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


@final
class Closing:
    """Ends everything that is pending, in slices. The purgatory takes no more operations meanwhile.

    It goes once over the entries of the watch lists, and looks up no key, because a key may raise.
    """

    def __init__(self, engine: Engine, state: OperationState, failure: BaseException | None = None) -> None:
        self._engine = engine
        self._state = state
        # The outcome that all operations get, in place of what their hooks would return.
        self._failure = failure
        self._withdrawal = Given(f"by closing purgatory {engine.name!r}")
        # What is left to do: the keys, and the operations of the current key, each in reverse order.
        self._places = engine.watchers.places()
        self._places.reverse()
        self._operations: list[Operation] = []
        self._error: BaseException | None = None

    def step(self, seconds: float = inf) -> bool:
        """Run a slice of so many seconds, or all that is left. Returns whether there is more to do.

        Raises the first exception that escaped a hook, when everything has ended.
        """
        clock = self._engine.timer.clock
        until = clock() + seconds
        while self._operations or self._places:
            if self._operations:
                self._end(self._operations.pop())
            else:
                self._operations = operations_at(self._places.pop())
                self._operations.reverse()
            if clock() >= until:
                self._engine.slices += 1
                return True
        if not self._engine.pending:
            # The entries of keys that could not be looked up.
            self._engine.watchers.clear()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return False

    def _end(self, operation: Operation) -> None:
        try:
            if self._state is CANCELLED:
                end(operation, CANCELLED, self._withdrawal)
            else:
                end(operation, self._state, None if self._failure is None else Failure(self._failure))
        except BaseException as error:
            # It goes up when every operation has ended.
            if self._error is None:
                self._error = error
