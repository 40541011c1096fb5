"""A disk that is slow, full or gone: rows become a gap, and operations are not harmed."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from purgatory import Purgatory
from purgatory.journal import JournalWriter
from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS
from purgatory.testing import VirtualTimeLoop
from tests.journal.conftest import Rows, Segments
from tests.journal.fakes import Disk, complete, threads, unfinished
from tests.operations import a_few_turns


async def test_rows_that_do_not_fit_while_the_disk_is_slow_become_a_gap(
    virtual_time: VirtualTimeLoop, directory: Path, disk: Disk, segments: Segments, rows: Rows
) -> None:
    async with (
        JournalWriter(directory, node="n1", max_rows=10, max_buffered=25) as journal,
        Purgatory(observers=[journal]) as held,
    ):
        disk.free.clear()
        # Two batches of ten rows wait for the disk, and another one is full.
        complete(held, times=30)
        for lost in range(1, 4):
            virtual_time._now = float(lost)
            complete(held)
        for _ in range(13):
            held.check_and_complete("key")
        # The counts do not wait for the disk.
        assert (journal.lost_operations, journal.lost_checks) == (3, 3)
        disk.free.set()
        await asyncio.sleep(0.1)
        # Rows are recorded again. The gap is written with the batch that was full.
        complete(held, times=5)
    assert [len(segment) for segment in segments(OPERATIONS)] == [10, 10, 10, 5]
    assert [len(segment) for segment in segments(CHECKS)] == [10]
    [gap] = rows(GAPS)
    assert gap["ended"] - gap["began"] == timedelta(seconds=2)
    assert (gap["node"], gap["lost_operations"], gap["lost_checks"]) == ("n1", 3, 3)


async def test_a_batch_with_more_rows_than_may_wait_is_written_when_none_wait(
    virtual_time: VirtualTimeLoop, directory: Path, segments: Segments, rows: Rows
) -> None:
    async with (
        JournalWriter(directory, max_rows=10, max_buffered=1) as journal,
        Purgatory(observers=[journal]) as held,
    ):
        for _ in range(3):
            complete(held, times=10)
            await asyncio.sleep(1)
    assert [len(segment) for segment in segments(OPERATIONS)] == [10, 10, 10]
    assert rows(GAPS) == []


async def test_a_full_disk_harms_no_operation_is_logged_once_and_becomes_a_gap(
    virtual_time: VirtualTimeLoop,
    directory: Path,
    disk: Disk,
    rows: Rows,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        JournalWriter(directory, max_seconds=1) as journal,
        Purgatory(observers=[journal]) as held,
    ):
        complete(held, times=3)
        await asyncio.sleep(2)
        disk.full = True
        for _ in range(2):
            complete(held, times=2)
            held.check_and_complete("key")
            await asyncio.sleep(2)
        assert held.statistics().completed == 7
        assert unfinished(directory) == []
        disk.full = False
        complete(held)
    assert len(rows(OPERATIONS)) == 4
    assert (journal.lost_operations, journal.lost_checks) == (4, 2)
    [gap] = rows(GAPS)
    assert gap["ended"] - gap["began"] == timedelta(seconds=2)
    assert (gap["lost_operations"], gap["lost_checks"]) == (4, 2)
    messages = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert messages == [
        (
            logging.ERROR,
            f"the journal in {directory} cannot be written, and rows are lost until writing works again: "
            "OSError: [Errno 28] No space left on device",
        ),
        (logging.WARNING, f"the journal in {directory} can be written again"),
    ]


async def test_if_directories_cannot_be_synced_no_row_is_lost_and_one_warning_is_logged(
    virtual_time: VirtualTimeLoop, directory: Path, disk: Disk, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    disk.syncs_only_files = True
    async with JournalWriter(directory, max_rows=2) as journal, Purgatory(observers=[journal]) as held:
        complete(held, times=6)
    assert len(rows(OPERATIONS)) == 6
    assert rows(GAPS) == []
    assert journal.lost_operations == 0
    assert caplog.messages == [
        f"the journal in {directory} cannot sync its directories, so a crash of the machine may remove "
        "its last segments: [Errno 22] Invalid argument"
    ]


async def test_rows_that_are_still_lost_at_the_end_are_logged(
    virtual_time: VirtualTimeLoop, directory: Path, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    async with JournalWriter(directory) as journal, Purgatory(observers=[journal]) as held:
        disk.full = True
        complete(held, times=3)
        held.check_and_complete("key")
    assert caplog.messages[1:] == [
        f"the journal in {directory} lacks 3 operations and 1 checks at its end, and no gap records them"
    ]
    assert unfinished(directory) == []


async def test_rows_are_lost_while_the_directory_is_gone(
    virtual_time: VirtualTimeLoop, directory: Path, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        JournalWriter(directory, max_seconds=1) as journal,
        Purgatory(observers=[journal]) as held,
    ):
        complete(held)
        await asyncio.sleep(2)
        shutil.rmtree(directory)
        complete(held)
        await asyncio.sleep(2)
        # Raises if the writer has made the directory again.
        os.mkdir(directory)
        complete(held)
    assert len(rows(OPERATIONS)) == 1
    assert [gap["lost_operations"] for gap in rows(GAPS)] == [1]
    assert len(caplog.messages) == 2


def test_the_name_of_an_unfinished_segment_begins_with_a_dot(directory: Path, disk: Disk) -> None:
    def assert_unfinished() -> None:
        # The thread waits for the disk, and the loop for the thread: only real time can pass.
        while not unfinished(directory):
            time.sleep(0.001)
        assert list(directory.rglob("*.parquet")) == []

    async def serve() -> None:
        async with JournalWriter(directory, max_rows=1) as journal, Purgatory(observers=[journal]) as held:
            disk.free.clear()
            complete(held)
            assert_unfinished()
            disk.free.set()

    asyncio.run(serve())
    assert unfinished(directory) == []
    assert len(list(directory.rglob("*.parquet"))) == 1


async def test_entering_raises_if_the_directory_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        async with JournalWriter(tmp_path / "file" / "journal"):
            pass
    assert threads() == []


async def test_a_cancelled_entry_does_not_block_the_loop_while_the_disk_is_slow(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, free = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    make = Path.mkdir

    def make_when_free(*arguments: Any, **options: Any) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert free.wait(30), "the test does not set the disk free"
        make(*arguments, **options)

    async def enter() -> None:
        async with JournalWriter(directory):
            raise AssertionError

    monkeypatch.setattr(Path, "mkdir", make_when_free)
    entering = asyncio.create_task(enter())
    await begun.wait()
    entering.cancel()
    # This would not return if the loop waited for the disk.
    await a_few_turns()
    assert not entering.done()
    free.set()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert threads() == []


@pytest.mark.parametrize("cancel", ["task", "scope"])
async def test_a_cancellation_waits_until_the_rows_are_written(
    directory: Path, disk: Disk, rows: Rows, cancel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = anyio.CancelScope()
    cancelled: list[BaseException] = []
    leaving = asyncio.Event()
    wait, waits = asyncio.wait, list[Any]()

    def counted(futures: Any) -> Any:
        waits.append(futures)
        return wait(futures)

    monkeypatch.setattr(asyncio, "wait", counted)

    async def serve() -> None:
        journal = JournalWriter(directory)
        with scope:
            try:
                # The journal is left first, so that the cancellations arrive while it is being left.
                async with Purgatory(observers=[journal]) as held, journal:
                    complete(held, times=3)
                    disk.free.clear()
                    waits.clear()
                    leaving.set()
                await anyio.sleep_forever()
            except asyncio.CancelledError as error:
                cancelled.append(error)
                raise

    serving = asyncio.create_task(serve())
    await leaving.wait()
    for _ in range(3):
        if cancel == "task":
            serving.cancel()
        else:
            scope.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    assert not serving.done()
    disk.free.set()
    # A scope of anyio would cancel again and again.
    assert len(waits) == (4 if cancel == "task" else 1)
    await wait([serving])
    assert serving.cancelled() is (cancel == "task")
    assert len(cancelled) == 1
    assert len(rows(OPERATIONS)) == 3
    assert threads() == []
