"""Work on many operations that stops after each slice, so that the event loop can run."""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import cast, final

from purgatory._core.engine.action_queue import IDLE, TRYING
from purgatory._core.engine.engine import Engine
from purgatory._core.operation import NO_LIMIT, Operation, end
from purgatory._core.outcome import CANCELLED, Failure, Given, OperationState
from purgatory._core.watch_list import Chunk, operations_at


@final
class Sweep:
    """A check of one key in slices. It tries the operations that were parked when it was made."""

    __slots__ = (
        "_after",
        "_chunk",
        "_engine",
        "_first",
        "_key",
        "_newest",
        "_over",
        "_started",
        "_tried",
        "completed",
    )

    def __init__(self, engine: Engine, key: Hashable) -> None:
        self._engine = engine
        self._key = key
        self._chunk: Chunk | None = None
        # The first chunk of the list. It stays as long as there is anything left to try.
        self._first: Chunk | None = None
        # The number of the operation at which the last slice stopped.
        self._after = 0
        # The number of the operation that was parked last.
        self._newest = engine.accounting.parked
        self._started = False
        self._over = False
        self._tried = 0
        self.completed = 0

    def step(self, seconds: float) -> bool:
        """Run a slice of so many seconds. Returns whether there is more to do."""
        engine = self._engine
        actions = engine.actions
        if not self._started:
            self._started = True
            place = engine.watchers.on(self._key)
            # In a hook it is the outermost call's work. An eager task would run it on the hook's stack.
            if actions.level or not isinstance(place, Chunk):
                self._over = True
                self.completed = engine.checker.check(self._key)
                return False
            self._chunk = self._first = place
        level = actions.level
        actions.level = max(level, TRYING)
        try:
            self._try_chunks(seconds)
        except BaseException:
            # The engine has asked for another check of the key.
            self._over = True
            actions.level = level
            actions.waiting = True
            actions.abort()
            raise
        actions.level = level
        if actions.waiting and level == IDLE:
            self.completed += actions.go_on(level)
        if self._chunk is None:
            self._finish()
            return False
        engine.accounting.slices += 1
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

    def _try_chunks(self, seconds: float) -> None:
        engine = self._engine
        clock = engine.timer.clock
        until = clock() + seconds
        while self._chunk is not None:
            self._after, tried, completed = engine.checker.try_chunk(
                self._chunk, self._after, self._newest, until, NO_LIMIT
            )
            self._tried += tried
            self.completed += completed
            if not self._after:
                self._chunk = self._chunk.following
            if clock() >= until:
                break

    def abandon(self) -> None:
        """The task that sweeps is cancelled, or a hook raised: the loop checks the rest in its next turn."""
        if not self._over:
            self._engine.checker.signal(self._key)
            self._finish()

    def _finish(self) -> None:
        self._over = True
        if self._engine.accounting.observed:
            self._engine.accounting.checked(self._key, self._tried, self.completed)


@final
class Closing:
    """Ends everything that is pending, in slices. The purgatory takes no more operations meanwhile.

    It goes once over the entries of the watch lists, and looks up no key, because a key may raise.
    """

    __slots__ = ("_engine", "_error", "_failure", "_operations", "_places", "_state", "_withdrawal")

    def __init__(self, engine: Engine, state: OperationState, failure: BaseException | None = None) -> None:
        self._engine = engine
        self._state = state
        # The outcome that all operations get, in place of what their hooks would return.
        self._failure = failure
        self._withdrawal = Given(f"by closing purgatory {engine.name!r}")
        # What is left to do: the keys, and the operations of the current key, each in reverse order.
        self._places: list[object] | None = None
        self._operations: list[Operation] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run all that is left, in one go."""
        self.step(inf)

    def step(self, seconds: float) -> bool:
        """Run a slice of so many seconds. Returns whether there is more to do.

        Raises the first exception that escaped a hook, when everything has ended.
        """
        clock = self._engine.timer.clock
        until = clock() + seconds
        places = self._places
        if places is None:
            places = self._engine.watchers.places()
            places.reverse()
            self._places = places
        while self._operations or places:
            if self._operations:
                self._end(self._operations.pop())
            else:
                operations = operations_at(places[-1])
                operations.reverse()
                places.pop()
                self._operations = operations
            if clock() >= until:
                self._engine.accounting.slices += 1
                return True
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return False

    def _end(self, operation: Operation) -> None:
        # The second try is for an operation that could not even be decided, for lack of memory.
        for state, failure in ((self._state, self._failure), (CANCELLED, None)):
            if operation.done:
                return
            try:
                if state is CANCELLED:
                    end(operation, state, self._withdrawal)
                else:
                    end(operation, state, None if failure is None else Failure(failure))
            except BaseException as error:
                # It goes up when every operation has ended.
                if self._error is None:
                    self._error = error
