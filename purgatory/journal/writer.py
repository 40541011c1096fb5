"""The observer that keeps a journal."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVarTuple, cast

from anyio import CancelScope

from purgatory import DelayedOperation
from purgatory._core.timer import clock_of
from purgatory.journal.gap import Gap, Losses
from purgatory.journal.rows import CHECK_WIDTH, OPERATION_WIDTH
from purgatory.journal.segments import Batch, Segments
from purgatory.observer import Timing

Ts = TypeVarTuple("Ts")

MAX_ROWS: Final = 50_000
MAX_SECONDS: Final = 10.0
MAX_BUFFERED: Final = 200_000


class JournalWriter:
    """Records every finished operation and every check of a key of the purgatories it observes.

    ``async with JournalWriter("journal") as journal, Purgatory("fetch", observers=[journal])``, for as many
    purgatories of that loop as there are. What ends before it is entered or after it is left is not recorded.

    `directory` is made where it is missing; `journal.schema` says what is in it. `node` is who writes, by
    default the host's name; several writers may share both. A batch of rows is written `max_seconds` after
    its first one, or as soon as it has `max_rows` of operations or of checks; a process that is killed loses
    that much, and what was being written. While the disk is slow, up to `max_buffered` rows wait for it, and
    then one batch more is filled; what comes after that is lost, and counted as a gap.

    Times are UTC: the wall clock is read once, when it is entered, and the loop's time is added. So no step
    of the wall clock makes a wait negative, and none is followed.

    The loop appends a row to a list (`python -m benchmarks journal` measures what that costs it). All else is
    done by one thread of the writer's own, which calls str() of the keys; so they must not change once they
    were used.

    Entering raises OSError where the directory cannot be made. After that a failing disk harms nobody: it is
    logged once, and what could not be written becomes a gap once writing works again. Raises ValueError for a
    limit that is not positive.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        node: str | None = None,
        max_rows: int = MAX_ROWS,
        max_seconds: float = MAX_SECONDS,
        max_buffered: int = MAX_BUFFERED,
    ) -> None:
        if max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, not {max_rows!r}")
        if not max_seconds > 0:
            raise ValueError(f"max_seconds must be a positive number of seconds, not {max_seconds!r}")
        if max_buffered < 1:
            raise ValueError(f"max_buffered must be at least 1, not {max_buffered!r}")
        self.directory = Path(directory)
        self.node = platform.node() if node is None else node
        self._max_rows = max_rows
        self._max_seconds = max_seconds
        self._max_buffered = max_buffered
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open = False
        # One thread, so that batches are written one after the other.
        self._thread: ThreadPoolExecutor | None = None
        self._segments: Segments | None = None
        # The batch that is being filled.
        self._operations: list[Any] = []
        self._checks: list[Any] = []
        self._gap: Gap | None = None
        # All that has ever found no room in one.
        self._left_out = Losses()
        # How long the two lists are full, and how long they may get before somebody has to look: at the first
        # row of a batch, and at one that fills it.
        self._operations_full = max_rows * OPERATION_WIDTH
        self._checks_full = max_rows * CHECK_WIDTH
        self._operations_mark = self._checks_mark = 0
        # When the batch is handed over at the latest; None while it is empty.
        self._rotation: asyncio.TimerHandle | None = None
        # Whether it would have been, but for the rows that the thread has not written yet.
        self._overdue = False
        self._waiting = 0

    @property
    def lost_operations(self) -> int:
        """The operations that are missing in the journal, because the disk was too slow or refused them."""
        return self._left_out.operations + (self._segments.lost.operations if self._segments else 0)

    @property
    def lost_checks(self) -> int:
        """The same of checks."""
        return self._left_out.checks + (self._segments.lost.checks if self._segments else 0)

    def __repr__(self) -> str:
        state = "open" if self._open else "new" if self._thread is None else "closed"
        return f"<JournalWriter {str(self.directory)!r} {state} waiting={self._waiting}>"

    async def __aenter__(self) -> Self:
        """Begin; it takes as long as the disk, also when cancelled. Raises RuntimeError the second time."""
        if self._thread is not None:
            raise RuntimeError(f"{self!r} was entered before: make a new one")
        loop = self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="purgatory journal")
        epoch = time.time() - clock_of(loop)()
        self._segments = Segments(self.directory, self.node, epoch, run=secrets.randbits(31))
        try:
            await self._done_in_thread(self._segments.open)
        except BaseException:
            self._thread.shutdown()
            raise
        self._open = True
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Write what is left; also when cancelled, which goes on afterwards. It takes as long as the disk."""
        self._open = False
        self._operations_mark = self._checks_mark = 0
        self._hand_over()
        try:
            await self._done_in_thread(cast(Segments, self._segments).close)
        finally:
            cast(ThreadPoolExecutor, self._thread).shutdown()

    # What is told by the purgatories

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        """Note it down. What is kept is the class and the keys, and not the operation."""
        rows = self._operations
        # Its fields, because to ask its properties would take as long as all the rest.
        rows += (
            purgatory,
            type(operation),
            operation._watched,
            timing,
            operation._state,
            operation._timeout,
            operation._deadline,
        )
        if len(rows) >= self._operations_mark:
            self._look_at_operations(rows, timing.ended)

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """Note it down."""
        rows = self._checks
        rows += (purgatory, key, at, tried, completed)
        if len(rows) >= self._checks_mark:
            self._look_at_checks(rows, at)

    def _look_at_operations(self, rows: list[Any], at: float) -> None:
        if not self._open:
            rows.clear()
        elif len(rows) <= self._operations_full:
            self._operations_mark = self._operations_full
            self._look(len(rows) == self._operations_full)
        else:
            del rows[self._operations_full :]
            self._lost(at).operations += 1
            self._left_out.operations += 1

    def _look_at_checks(self, rows: list[Any], at: float) -> None:
        if not self._open:
            rows.clear()
        elif len(rows) <= self._checks_full:
            self._checks_mark = self._checks_full
            self._look(len(rows) == self._checks_full)
        else:
            del rows[self._checks_full :]
            self._lost(at).checks += 1
            self._left_out.checks += 1

    def _lost(self, at: float) -> Gap:
        """The gap that now lasts until `at` this time."""
        if self._gap is None:
            self._gap = Gap(at, at)
        self._gap.ended = at
        return self._gap

    # Rotation

    def _look(self, full: bool) -> None:
        """The batch that is being filled is no longer empty, or is `full`."""
        if self._rotation is None:
            self._rotation = cast(asyncio.AbstractEventLoop, self._loop).call_later(
                self._max_seconds, self._rotate
            )
        if full:
            self._rotate()

    def _rotate(self) -> None:
        """Hand the batch to the thread, or, where too much waits for that, as soon as less does."""
        rows = len(self._operations) // OPERATION_WIDTH + len(self._checks) // CHECK_WIDTH
        self._overdue = self._waiting > 0 and self._waiting + rows > self._max_buffered
        if not self._overdue:
            self._hand_over()

    def _hand_over(self) -> None:
        batch = Batch(self._operations, self._checks, self._gap)
        self._operations, self._checks, self._gap = [], [], None
        self._operations_mark = self._checks_mark = 0
        self._overdue = False
        if self._rotation is not None:
            self._rotation.cancel()
            self._rotation = None
        rows = len(batch)
        self._waiting += rows
        self._in_thread(cast(Segments, self._segments).write, batch).add_done_callback(
            lambda _: self._written(rows)
        )

    def _written(self, rows: int) -> None:
        self._waiting -= rows
        if self._overdue:
            self._rotate()

    async def _done_in_thread(self, act: Callable[[], None]) -> None:
        """Do it after all that the thread has to do, and wait for that, also when cancelled meanwhile."""
        last = self._in_thread(act)
        cancelled: asyncio.CancelledError | None = None
        with CancelScope(shield=True):
            while not last.done():
                try:
                    await asyncio.wait([last])
                except asyncio.CancelledError as error:
                    # A plain Task.cancel, which no shield stops. The rows come first, or they are lost; and
                    # to shut down a thread that is still at work would block the loop.
                    cancelled = error
        last.result()
        if cancelled is not None:
            raise cancelled

    def _in_thread(self, act: Callable[[*Ts], None], *arguments: *Ts) -> asyncio.Future[None]:
        return cast(asyncio.AbstractEventLoop, self._loop).run_in_executor(self._thread, act, *arguments)
