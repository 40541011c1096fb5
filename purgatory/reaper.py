"""The reaper, and how a purgatory opens and closes."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Final, final

from anyio import CancelScope

from purgatory._core.engine import Engine
from purgatory._core.outcome import CANCELLED, EXPIRED, FAILED, OperationState
from purgatory._core.timer import Timer
from purgatory.bulk import Closing, Pace
from purgatory.errors import PurgatoryClosed, safe_repr
from purgatory.reports import Debugger

if TYPE_CHECKING:
    from anyio.abc import TaskStatus


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
                # Newcomers may be other clients than the woken ones, so they do not make the slices longer.
                await pace.pause()
            elif not timer.stopped:
                await timer.sleep()
                pace = Pace(timer.slice_seconds)
    finally:
        timer.detach_reaper()


# All that exist, for reports of a loop that waits forever.
LIFECYCLES: Final[weakref.WeakSet[Lifecycle]] = weakref.WeakSet()


@final
class Lifecycle:
    """Opens an engine on a loop, runs its reaper, and closes it.

    The reaper is a task of its own, or the caller's task. When the reaper fails, nothing can expire any more.
    So the purgatory closes, and every waiter gets the error.
    """

    __slots__ = ("__weakref__", "_closed", "_debug", "engine", "reaper")

    def __init__(self, engine: Engine, debug: bool | None) -> None:
        self.engine = engine
        # None means that the loop's own debug mode decides.
        self._debug = debug
        LIFECYCLES.add(self)
        # The task of the reaper, when it has one of its own.
        self.reaper: asyncio.Task[None] | None = None
        # It is set when nothing is pending any more.
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
            self.reaper = loop.create_task(reaping, name=f"{self.engine.name} reaper")
        except BaseException:
            # Nothing would ever expire.
            reaping.close()
            self._end_all(CANCELLED, None)
            raise
        self.reaper.add_done_callback(self._task_ended)

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
                if self.reaper is not None:
                    ending.add(self.reaper)
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
