"""The observer that writes a journal."""

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
from typing import Final, Self, TypeVarTuple, cast

from purgatory._cancellation import uninterrupted
from purgatory._core.timer import clock_of
from purgatory.journal.gap import Gap, Losses
from purgatory.journal.schema import CHECKS_TABLE, OPERATIONS_TABLE, record_operation
from purgatory.journal.segments import Batch, Segments
from purgatory.journal.table import RecordedRows

Ts = TypeVarTuple("Ts")

MAX_ROWS: Final = 50_000
MAX_SECONDS: Final = 10.0
MAX_BUFFERED: Final = 200_000

# How many times the two clocks are read. The system may stop the thread during some of the readings.
_READINGS: Final = 5


class JournalWriter:
    """Records every finished operation and every check of a key of the purgatories it observes.

    ``async with JournalWriter("journal") as journal, Purgatory("fetch", observers=[journal])``, for any
    number of purgatories of that event loop. Operations that end before the writer is entered, or after it is
    left, are not recorded.

    `directory` is made if it does not exist; `journal.schema` defines its content. `node` names the writer's
    process, by default the host's name; several writers may use the same directory and the same name. A batch
    of rows is written `max_seconds` after its first row, or when it has `max_rows` rows of operations or of
    checks. If the process is killed, the rows that are not written yet are lost. While the disk is slow, up
    to `max_buffered` rows wait for it, and one more batch fills up. Further rows are lost, and counted as a
    gap.

    Times are UTC. The wall clock is read once, when the writer is entered, and the loop's time is added to
    it. So a step of the wall clock makes no wait negative, and the journal does not follow the step.

    The event loop appends each row to a list (`python -m benchmarks journal` measures the cost). A thread of
    the writer does all the rest. It calls str() of the keys, so a key must not change after it was used.

    Entering raises OSError if the directory cannot be made. After that a failing disk harms no operation: the
    log has one line, and the rows that could not be written become a gap when writing works again. Raises
    ValueError for a limit that is not positive.
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
        # The batch that fills up.
        self._operations, self._checks = self._empty_rows()
        self._gap: Gap | None = None
        # All rows that were lost because too many rows were waiting.
        self._overflow = Losses()
        # The timer that hands over the batch if the batch does not fill up before. None while it is empty.
        self._rotation: asyncio.TimerHandle | None = None
        # Whether the batch is due, but too many rows wait for the thread.
        self._overdue = False
        # Rows that were handed over to the thread, and are not written yet.
        self._waiting = 0

    @property
    def lost_operations(self) -> int:
        """Operations that are missing in the journal, because the disk was too slow or failed."""
        return self._overflow.operations + (self._segments.lost.operations if self._segments else 0)

    @property
    def lost_checks(self) -> int:
        """Checks that are missing in the journal, because the disk was too slow or failed."""
        return self._overflow.checks + (self._segments.lost.checks if self._segments else 0)

    def __repr__(self) -> str:
        state = "open" if self._open else "new" if self._thread is None else "closed"
        return f"<JournalWriter {str(self.directory)!r} {state} waiting={self._waiting}>"

    async def __aenter__(self) -> Self:
        """Make the directories and begin to record.

        Waits for the disk, even if the task is cancelled. Raises RuntimeError when entered a second time.
        """
        if self._thread is not None:
            raise RuntimeError(f"{self!r} was entered before: make a new one")
        loop = self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="purgatory journal")
        epoch = _epoch_of(clock_of(loop))
        self._segments = Segments(self.directory, self.node, epoch, run=secrets.randbits(31))
        try:
            await self._finish_in_thread(self._segments.open)
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
        """Write the remaining rows. Waits for the disk; a cancellation is raised after that."""
        self._open = False
        self._hand_over()
        try:
            await self._finish_in_thread(cast(Segments, self._segments).close)
        finally:
            cast(ThreadPoolExecutor, self._thread).shutdown()

    # The Observer protocol

    # `schema` defines this method beside the columns that it fills.
    operation_finished = record_operation

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """Record a check of a key."""
        rows = self._checks
        rows += (purgatory, key, tried, completed, at)
        if len(rows) >= rows.check_at:
            self._check(rows, at)

    def _check(self, rows: RecordedRows, at: float) -> None:
        """Handle the first row of a batch, the row that fills it, and rows that do not fit any more."""
        if not self._open:
            rows.clear()
        elif len(rows) <= rows.full_at:
            rows.check_at = rows.full_at
            if self._rotation is None:
                loop = cast(asyncio.AbstractEventLoop, self._loop)
                self._rotation = loop.call_later(self._max_seconds, self._rotate)
            if len(rows) == rows.full_at:
                self._rotate()
        else:
            del rows[rows.full_at :]
            if self._gap is None:
                self._gap = Gap(at, at)
            self._gap.ended = at
            lost = 1 if rows is self._operations else 0
            self._gap.operations += lost
            self._gap.checks += 1 - lost
            self._overflow.operations += lost
            self._overflow.checks += 1 - lost

    # Rotation: the thread gets the full batch, and a new one begins

    def _empty_rows(self) -> tuple[RecordedRows, RecordedRows]:
        return (
            RecordedRows(OPERATIONS_TABLE.width, self._max_rows),
            RecordedRows(CHECKS_TABLE.width, self._max_rows),
        )

    def _rotate(self) -> None:
        """Hand over the batch, or postpone that until fewer rows wait for the thread."""
        rows = self._operations.rows + self._checks.rows
        self._overdue = self._waiting > 0 and self._waiting + rows > self._max_buffered
        if not self._overdue:
            self._hand_over()

    def _hand_over(self) -> None:
        batch = Batch(self._operations, self._checks, self._gap)
        self._operations, self._checks = self._empty_rows()
        self._gap = None
        self._overdue = False
        if self._rotation is not None:
            self._rotation.cancel()
            self._rotation = None
        rows = batch.rows
        self._waiting += rows
        self._in_thread(cast(Segments, self._segments).write, batch).add_done_callback(
            lambda _: self._written(rows)
        )

    def _written(self, rows: int) -> None:
        self._waiting -= rows
        if self._overdue:
            self._rotate()

    async def _finish_in_thread(self, act: Callable[[], None]) -> None:
        """Run `act` in the thread, after all its other work, and wait for it, even if the task is cancelled.

        Without the wait, rows would be lost, and the shutdown of the busy thread would block the loop.
        """
        await uninterrupted(self._in_thread(act))

    def _in_thread(self, act: Callable[[*Ts], None], *arguments: *Ts) -> asyncio.Future[None]:
        return cast(asyncio.AbstractEventLoop, self._loop).run_in_executor(self._thread, act, *arguments)


def _epoch_of(clock: Callable[[], float]) -> float:
    """The time at which `clock` was zero, in seconds since 1970. The shortest reading is the most exact."""

    def reading() -> tuple[float, float]:
        began = clock()
        now = time.time()
        return clock() - began, now - began

    return min(reading() for _ in range(_READINGS))[1]
