"""Work on many operations in slices, between which the event loop runs: sweeps, closing, and their pace."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from math import inf
from typing import Final, cast, final

from purgatory._core.action_queue import IDLE, TRYING
from purgatory._core.checker import Checker
from purgatory._core.engine import Engine
from purgatory._core.operation import NO_LIMIT, Operation, end
from purgatory._core.outcome import CANCELLED, Failure, Given, OperationState
from purgatory._core.timer import clock_of
from purgatory._core.watch_list import Chunk, operations_at

# A timer that came due during a slice runs in the first turn, behind the task that pauses. It wakes its own
# task, which runs in the second turn. With fewer turns a task that sleeps for a millisecond waits for two or
# three slices instead of one. A task that an operation wakes runs in the first turn. A task in
# `purgatory.web.poll` runs in the second one, because it is interrupted first.
TURNS: Final = 3

# The first slice takes this share of the time, and no slice takes a smaller one. An answer to a client takes
# about twenty times as long as the end of the operation that it waited for, or longer.
LEAST: Final = 1 / 64

# If more than 1 in 8 woken clients have asked again, the clients that are still waiting come first.
OVERTAKEN: Final = 8

# The longest slice, in `slice_seconds`.
LONGEST: Final = 200


@final
class Pace:
    """Says how long the next slice of bulk work may last, from what the last one did to the loop.

    A slice of 5 ms ends a thousand operations. The tasks that await them then hold the loop for twenty times
    as long. So a slice and what it wakes take `slice_seconds` together: the next slice lasts for the share of
    the time that the last one took. Where others hold the loop for longer than that between two slices, the
    two take as long as the others did. So bulk work gets half of a busy loop.

    What a slice wakes does not run in every turn of the pause, and others do. So the shortest turn tells how
    long others hold the loop in each.
    """

    __slots__ = ("_began", "_behind", "_clock", "_seen", "_slice_seconds", "seconds")

    def __init__(self, slice_seconds: float) -> None:
        self._clock = clock_of(asyncio.get_running_loop())
        self._slice_seconds = slice_seconds
        # The seconds that the next slice may last.
        self.seconds = slice_seconds * LEAST
        self._began = self._clock()
        # Whether the pause was longer than the slice before it.
        self._behind = False
        # How many operations had ended before the last slice. Their clients have had a pause to ask again.
        self._seen = 0

    async def pause(self) -> None:
        """Let the loop run for three turns after a slice. The next one begins when this returns."""
        clock = self._clock
        ended = now = clock()
        shortest = inf
        for _ in range(TURNS):
            turn = now
            await asyncio.sleep(0)
            now = clock()
            shortest = min(shortest, now - turn)
        taken, paused, others = ended - self._began, now - ended, TURNS * shortest
        woken = paused - others
        # By the clock, a slice that is shorter than its resolution takes no time.
        share = taken / (taken + woken) if taken else 0.0
        together = max(self._slice_seconds, min(others, LONGEST * self._slice_seconds))
        self.seconds = together * max(share, LEAST)
        self._behind = paused > taken
        self._began = now

    def heed(self, ended: int, newcomers: int) -> None:
        """After a pause: so many have ended by this work, and so many wait that have come since it began.

        When woken clients ask again, the loop serves them in each pause, before it wakes the others. Mostly
        that takes longer than an answer. So there are no more pauses for a while. With 5,000 long polls that
        ask again at once, the p99 is then 1.2 times the p99 of an asyncio.Event. With pauses it is 6 times as
        long (`python -m benchmarks longpoll --only wake-again`).
        """
        if self._behind and newcomers * OVERTAKEN > self._seen > 0:
            self.seconds = LONGEST * self._slice_seconds
        self._seen = ended


async def pause() -> None:
    """Let the loop run what is ready, as between two slices, in work that is not for many operations."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


@final
class Sweep:
    """A check of one key in slices. It tries the operations that were parked when it was made."""

    def __init__(self, checker: Checker, key: Hashable) -> None:
        self._checker = checker
        self._engine = engine = checker.engine
        self._key = key
        # The next slice goes on in this chunk, after the operation of this number. It is None at the end.
        self._chunk: Chunk | None = None
        self._after = 0
        # The first chunk of the list. It stays as long as there is anything left to try.
        self._first: Chunk | None = None
        # The number of the operation that was parked last.
        self._newest = engine.parked
        self._tried = 0
        self.completed = 0
        place = engine.watchers.on(key)
        # In a hook, the outermost call checks the key. An eager task would do it on the hook's stack.
        if isinstance(place, Chunk) and engine.queue.level == IDLE:
            engine.check_thread()
            self._chunk = self._first = place
        else:
            self.completed = checker.check(key)

    def step(self, seconds: float) -> bool:
        """Run a slice of so many seconds. Returns whether there is more to do."""
        chunk = self._chunk
        if chunk is None:
            return False
        engine = self._engine
        queue = engine.queue
        level = queue.level
        queue.level = max(level, TRYING)
        try_chunk = self._checker.try_chunk
        whole = False
        try:
            until = engine.timer.clock() + seconds
            while chunk is not None:
                self._after, tried, completed = try_chunk(chunk, self._after, self._newest, until, NO_LIMIT)
                self._tried += tried
                self.completed += completed
                if self._after:
                    break
                chunk = chunk.following
            whole = True
        finally:
            # When a hook has raised, the checker has asked for another check of the key.
            self._chunk = chunk if whole else None
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
        # They are at the end of the list.
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
        self._places = list(engine.watchers.table.values())
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
