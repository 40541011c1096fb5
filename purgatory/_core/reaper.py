"""Layer 3: what ends operations that nobody completes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast, final

from anyio import CancelScope

from purgatory._core.accounting import Accounting
from purgatory._core.operation import EXPIRED, OperationState, end, fail
from purgatory._core.safe_repr import safe_repr
from purgatory._core.timer import Timer, pause
from purgatory._core.watchers import Chunk, Watchers
from purgatory.errors import PurgatoryClosed

if TYPE_CHECKING:
    from anyio.abc import TaskStatus


@final
class Reaper:
    """Ends operations by time: each at its deadline, and at the close of the purgatory all that are left.

    It is in a task of its own or in one of the caller's. When it fails, nothing expires any more: the
    purgatory closes, and all who wait are told why.
    """

    __slots__ = (
        "_accounting",
        "_closed",
        "_loop",
        "_name",
        "_slice_seconds",
        "_task",
        "_timer",
        "_watchers",
        "closing",
        "open",
    )

    def __init__(
        self, name: str, timer: Timer, watchers: Watchers, accounting: Accounting, slice_seconds: float
    ) -> None:
        self._name = name
        self._timer = timer
        self._watchers = watchers
        self._accounting = accounting
        self._slice_seconds = slice_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        # Whether the purgatory takes operations.
        self.open = False
        # Whether it never will again.
        self.closing = False
        # Set when nothing is pending any more.
        self._closed = asyncio.Event()

    def open_on(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.closing:
            raise PurgatoryClosed(f"purgatory {self._name!r} has been closed: make a new one")
        if self.open:
            raise RuntimeError(f"purgatory {self._name!r} is open already")
        self._loop = loop
        self._timer.start(loop)
        self.open = True

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Reap in a task of its own."""
        self._task = loop.create_task(self._timer.run(), name=f"{self._name} reaper")
        self._task.add_done_callback(self._task_ended)

    async def run(self, task_status: TaskStatus[None]) -> None:
        """Reap in this task."""
        ended_by: BaseException | None = None
        try:
            task_status.started()
            await self._timer.run()
        except BaseException as error:
            ended_by = error
            if not isinstance(error, asyncio.CancelledError):
                self._failed(error)
        # Out here, because an await inside an except or finally leaks the exception where it is compiled.
        await self.aclose(EXPIRED)
        if ended_by is not None:
            raise ended_by

    async def aclose(self, state: OperationState) -> None:
        """End everything that is pending in `state`; returns when it is, whoever began that."""
        if self.closing:
            await self._closed.wait()
            return
        self.closing = True
        if not self.open:
            self._closed.set()
            return
        self.open = False
        self._timer.stop()
        endings = self._end_all(state)
        try:
            with CancelScope(shield=True):
                for _ in endings:
                    self._accounting.slices += 1
                    await pause()
                if self._task is not None:
                    await asyncio.wait([self._task])
        finally:
            # Nothing is left of it but after a plain Task.cancel, which no shield stops.
            try:
                for _ in endings:
                    pass
            finally:
                self._closed.set()

    def _end_all(self, state: OperationState) -> Iterator[None]:
        """End everything that is pending, pausing after each slice."""
        first: BaseException | None = None
        until = self._time() + self._slice_seconds
        for key in self._watchers.watched_keys():
            place = self._watchers.on(key)
            while place is not None:
                try:
                    end(place.operations[0] if isinstance(place, Chunk) else place, state)
                except BaseException as error:
                    # It has to go up, but not before everybody has been told.
                    first = error if first is None else first
                if self._time() >= until:
                    yield
                    until = self._time() + self._slice_seconds
                place = self._watchers.on(key)
        if first is not None:
            raise first

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            # Not by us: the loop is being torn down around an open purgatory.
            self._shut()
            for operation in self._watchers.operations():
                operation.cancel()
            return
        error = task.exception()
        if error is not None:
            self._failed(error)
            self._accounting.report(f"the reaper of purgatory {self._name!r} failed; it is closed", error)

    def _failed(self, error: BaseException) -> None:
        """Nothing expires any more: whoever waits must know."""
        self._shut()
        if not isinstance(error, Exception):
            # Raised in every waiting task, a KeyboardInterrupt would end the loop as many times.
            closed = PurgatoryClosed(f"the reaper of purgatory {self._name!r} failed: {safe_repr(error)}")
            closed.__cause__ = error
            error = closed
        for operation in self._watchers.operations():
            fail(operation, error)

    def _shut(self) -> None:
        self.open = False
        self.closing = True
        self._timer.stop()
        self._closed.set()

    def _time(self) -> float:
        return cast(asyncio.AbstractEventLoop, self._loop).time()
