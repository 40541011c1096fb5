"""The reaper, the pace of its slices, and how a purgatory opens and closes."""

from __future__ import annotations

import asyncio
import weakref
from math import inf
from typing import TYPE_CHECKING, Final, final

from anyio import CancelScope

from purgatory._core.engine import Engine
from purgatory._core.operation import Operation, end
from purgatory._core.outcome import CANCELLED, EXPIRED, FAILED, Failure, Given, OperationState
from purgatory._core.timer import Timer, clock_of
from purgatory._core.watch_list import operations_at
from purgatory.errors import PurgatoryClosed, safe_repr
from purgatory.reports import Debugger

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

# A timer that came due during a slice runs in the first turn, behind the task that pauses. It wakes its own
# task, which runs in the second turn. With fewer turns a task that sleeps for a millisecond waits for two or
# three slices instead of one. A task that an operation wakes runs in the first turn, and that of
# `purgatory.web.poll` in the second one, because it is interrupted first.
TURNS: Final = 3

# The first slice takes this share of the time, and no slice takes a smaller one. An answer to a client takes
# about twenty times as long as the end of the operation that it waited for, or longer.
LEAST: Final = 1 / 64

# When one in so many of those who were woken asks again, the others wait behind these.
OVERTAKEN: Final = 8

# No slice lasts longer than so many times `slice_seconds`.
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
        # How long the next slice may last.
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

        When those who were woken ask again, the loop serves them in each pause, before it wakes the others.
        Mostly that takes longer than an answer. So there are no more pauses for a while. With 5,000 long
        polls that ask again at once, the p99 is then 1.1 times that of an asyncio.Event. With pauses it is
        6 times that (`python -m benchmarks longpoll --only wake-again`).
        """
        if self._behind and newcomers * OVERTAKEN > self._seen > 0:
            self.seconds = LONGEST * self._slice_seconds
        self._seen = ended


async def reap(timer: Timer) -> None:
    """Run every task of `timer` at its time, until `timer.stop()`. Yields to the loop between two slices.

    The timer has to be started. Raises RuntimeError when another reaper drives it.
    """
    timer.attach_reaper()
    pace = Pace(timer.slice_seconds)
    try:
        while not timer.stopped:
            timer.wake()
            if timer.run_due(pace.seconds):
                timer.slices += 1
                # Newcomers may be others than those who were woken, so they do not make the slices longer.
                await pace.pause()
            elif not timer.stopped:
                await timer.sleep()
                pace = Pace(timer.slice_seconds)
    finally:
        timer.detach_reaper()


async def pause() -> None:
    """Let the loop run what is ready, as between two slices, in work that is not for many operations."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


# All that exist, for reports of a loop that waits forever.
LIFECYCLES: Final[weakref.WeakSet[Lifecycle]] = weakref.WeakSet()


@final
class Lifecycle:
    """Opens an engine on a loop, runs its reaper, and closes it.

    The reaper is a task of its own, or the caller's task. When the reaper fails, nothing can expire any more.
    So the purgatory closes, and every waiter gets the error.
    """

    __slots__ = ("__weakref__", "_closed", "_debug", "_task", "engine")

    def __init__(self, engine: Engine, debug: bool | None) -> None:
        self.engine = engine
        # None means: as the loop does.
        self._debug = debug
        LIFECYCLES.add(self)
        self._task: asyncio.Task[None] | None = None
        # Set when nothing is pending any more.
        self._closed = asyncio.Event()

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open the engine on `loop`, which has no reaper yet."""
        self.engine.open_on(loop)
        if loop.get_debug() if self._debug is None else self._debug:
            self.engine.debugger = Debugger(loop, self.engine.reporter)
            # The engine looks at the fields of an operation when it notes its time.
            self.engine.observed = True

    def start(self) -> None:
        """Open the engine on the running loop, and reap in a new task."""
        loop = asyncio.get_running_loop()
        self.open_on(loop)
        reaping = reap(self.engine.timer)
        try:
            self._task = loop.create_task(reaping, name=f"{self.engine.name} reaper")
        except BaseException:
            # Nothing would ever expire.
            reaping.close()
            self._end_all(CANCELLED, None)
            raise
        self._task.add_done_callback(self._task_ended)

    async def run(self, task_status: TaskStatus[None]) -> None:
        """Open the engine on the running loop, and reap in this task until it is cancelled or closed."""
        self.open_on(asyncio.get_running_loop())
        try:
            task_status.started()
            await reap(self.engine.timer)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            await self.aclose(EXPIRED)

    async def aclose(self, state: OperationState) -> None:
        """End everything that is pending in `state`. Returns when it has ended, whoever began the closing."""
        engine = self.engine
        if engine.closing:
            await self._closed.wait()
            return
        if not engine.open:
            engine.shut()
            self._closed.set()
            return
        closing = Closing(engine, state)
        try:
            engine.shut()
            with CancelScope(shield=True):
                pace = Pace(engine.timer.slice_seconds)
                while closing.step(pace.seconds):
                    await pace.pause()
                # An evaluation may be what closes the purgatory.
                ending = engine.evaluations - {asyncio.current_task()}
                if self._task is not None:
                    ending.add(self._task)
                if ending:
                    await asyncio.wait(ending)
        finally:
            # A plain Task.cancel gets through the shield. Then the rest ends here in one go.
            try:
                closing.step()
            finally:
                self._closed.set()

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            # Nobody here cancels the reaper. At its end, asyncio.run cancels all tasks.
            self._end_all(CANCELLED, None)
            self.engine.reporter.warn("the reaper was cancelled while the purgatory was open; it is closed")
            return
        error = task.exception()
        if error is not None:
            self.engine.reporter.report(
                f"the reaper of purgatory {self.engine.name!r} failed; it is closed", error
            )
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        if not isinstance(error, Exception):
            # A KeyboardInterrupt that every waiting task raises would end the loop as many times.
            message = f"the reaper of purgatory {self.engine.name!r} failed: {safe_repr(error)}"
            closed = PurgatoryClosed(message)
            closed.__cause__ = error
            error = closed
        self._end_all(FAILED, error)

    def _end_all(self, state: OperationState, error: BaseException | None) -> None:
        """Close at once, and end everything that is pending in `state`."""
        self._closed.set()
        self.engine.shut()
        Closing(self.engine, state, error).step()


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
