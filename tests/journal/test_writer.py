"""What is recorded, when it is written, and what becomes of it when something goes wrong."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pyarrow.parquet as pq
import pytest

from purgatory import Purgatory
from purgatory.journal import JournalWriter
from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS, SCHEMA_VERSION, SCHEMAS, VERSION_KEY
from purgatory.testing import VirtualTimeLoop
from tests.operations import Gate, a_few_turns, raising

Rows = Callable[[str], list[dict[str, Any]]]
Segments = Callable[[str], list[list[dict[str, Any]]]]


class Disk:
    """Can be made slow, full, or unable to sync directories; it is where `os.fsync` would go."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.full = False
        self.files_alone = False

    def fsync(self, descriptor: int) -> None:
        self.free.wait()
        if self.files_alone and stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk.fsync)
    yield disk
    disk.free.set()


def complete(purgatory: Purgatory, times: int = 1) -> None:
    for _ in range(times):
        purgatory.try_complete_else_watch(Gate(opened=True), ["key"])


def hold_the_loop(seconds: float) -> None:
    time.sleep(seconds)


def unfinished(directory: Path) -> list[Path]:
    return [path for path in directory.rglob(".*") if path.is_file()]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "journal" in thread.name]


async def test_a_finished_operation_is_a_row(
    virtual_time: VirtualTimeLoop, directory: Path, rows: Rows
) -> None:
    earliest = datetime.now(UTC) - timedelta(seconds=virtual_time.time())
    async with (
        JournalWriter(directory, node="n1") as journal,
        Purgatory("fetch", observers=[journal]) as held,
    ):
        # The wall clock is read once, when the writer is entered.
        latest = datetime.now(UTC) - timedelta(seconds=virtual_time.time())
        await asyncio.sleep(1)
        offered = timedelta(seconds=virtual_time.time())
        gate = held.try_complete_else_watch(Gate(5), ["a", 2])
        await asyncio.sleep(0.25)
        held.check_and_complete("a")
        gate.opened = True
        held.check_and_complete(2)
    [row] = rows(OPERATIONS)
    rounding = timedelta(microseconds=1)
    assert earliest + offered - rounding <= row.pop("started") <= latest + offered + rounding
    assert isinstance(row.pop("operation_id"), int)
    assert row == {
        "node": "n1",
        "purgatory": "fetch",
        "kind": "Gate",
        "keys": ["a", "2"],
        "timeout_us": 5_000_000,
        "waited_us": 250_000,
        "lateness_us": None,
        "outcome": "completed",
        "tries": 3,
    }
    assert rows(GAPS) == []


async def test_a_checked_key_is_a_row(virtual_time: VirtualTimeLoop, directory: Path, rows: Rows) -> None:
    async with (
        JournalWriter(directory, node="n1") as journal,
        Purgatory("fetch", observers=[journal]) as held,
    ):
        for name in ("one", "other"):
            held.try_complete_else_watch(Gate(5, name), ["a"]).opened = name == "one"
        held.check_and_complete("a")
        await asyncio.sleep(1)
        await held.sweep(("nobody", 1))
    first, second = rows(CHECKS)
    assert second["checked"] - first.pop("checked") == timedelta(seconds=1)
    assert first == {"node": "n1", "purgatory": "fetch", "key": "a", "tried": 2, "completed": 1}
    assert (second["key"], second["tried"], second["completed"]) == ("('nobody', 1)", 0, 0)


async def test_every_way_to_end_is_told_apart(
    virtual_time: VirtualTimeLoop, directory: Path, rows: Rows, reported: list[dict[str, Any]]
) -> None:
    async with JournalWriter(directory) as journal, Purgatory(observers=[journal]) as held:
        offer = held.try_complete_else_watch
        offer(Gate(0.5), ["a"]).force_complete()
        offer(Gate(0.5), ["a"]).cancel()
        offer(Gate(0.5, completing=raising(ValueError())), ["a"]).force_complete()
        offer(Gate(0), ["a", "a"])
        offer(Gate(-1), ["a"])
        offer(Gate(1.0000005), ["a"])
        offer(Gate(None), ["a"]).reschedule(2)
        await asyncio.sleep(3)
        offer(Gate(60), ["a"])
        offer(Gate(1e20), ["a"])
        offer(Gate(None), ["a", "b"])
    assert [(row["outcome"], row["timeout_us"], row["lateness_us"]) for row in rows(OPERATIONS)] == [
        ("completed", 500_000, None),
        ("cancelled", 500_000, None),
        ("failed", 500_000, None),
        # Which are never late.
        ("expired", 0, None),
        ("expired", 0, None),
        # It is a tick of a millisecond that it was rounded up to.
        ("expired", 1_000_001, 1_000),
        ("expired", 2_000_000, 0),
        # Closing expires what is pending.
        ("expired", 60_000_000, None),
        ("expired", None, None),
        ("expired", None, None),
    ]
    assert [row["keys"] for row in rows(OPERATIONS)] == [["a"]] * 9 + [["a", "b"]]
    assert len(reported) == 1


async def test_the_time_is_utc_on_every_loop(directory: Path, rows: Rows) -> None:
    # Meanwhile uvloop does not look at the clock.
    hold_the_loop(0.005)
    async with JournalWriter(directory) as journal, Purgatory(observers=[journal]) as held:
        before = datetime.now(UTC)
        complete(held)
        held.check_and_complete("key")
        after = datetime.now(UTC)
    # uvloop's time, which is up to a millisecond behind and stands still within a turn, would be too early.
    room = timedelta(microseconds=100)
    assert before - room < rows(OPERATIONS)[0]["started"] < after + room
    assert before - room < rows(CHECKS)[0]["checked"] < after + room


async def test_one_writer_serves_several_purgatories_and_several_writers_one_directory(
    virtual_time: VirtualTimeLoop, directory: Path, rows: Rows
) -> None:
    for _ in range(3):
        async with (
            JournalWriter(directory, node="n1") as journal,
            Purgatory("fetch", observers=[journal]) as fetch,
            Purgatory("fetch", observers=[journal]) as other,
            Purgatory("produce", observers=[journal]) as produce,
        ):
            for held in (fetch, other, produce):
                complete(held, times=10)
    recorded = rows(OPERATIONS)
    assert sorted({row["purgatory"] for row in recorded}) == ["fetch", "produce"]
    assert len({row["operation_id"] for row in recorded}) == len(recorded) == 90


async def test_a_segment_says_by_which_version_of_the_schema_it_was_written(
    virtual_time: VirtualTimeLoop, directory: Path, disk: Disk
) -> None:
    async with (
        JournalWriter(directory, max_rows=1, max_buffered=1) as journal,
        Purgatory(observers=[journal]) as held,
    ):
        complete(held)
        held.check_and_complete("key")
        complete(held, times=2)
    for table in (OPERATIONS, CHECKS, GAPS):
        segment = pq.ParquetFile(next((directory / table).glob("*.parquet")))
        assert segment.schema_arrow.equals(SCHEMAS[table], check_metadata=True)
        assert segment.schema_arrow.metadata[VERSION_KEY] == str(SCHEMA_VERSION).encode()
        assert segment.metadata.row_group(0).column(0).compression == "ZSTD"


async def test_a_batch_is_written_when_it_has_as_many_rows_as_it_may(
    virtual_time: VirtualTimeLoop, directory: Path, segments: Segments
) -> None:
    async with (
        JournalWriter(directory, max_rows=10) as journal,
        Purgatory(observers=[journal]) as held,
    ):
        complete(held, times=25)
        # The operations' lists were full twice; these fill the checks'.
        for _ in range(12):
            held.check_and_complete("key")
        complete(held)
    assert [len(segment) for segment in segments(OPERATIONS)] == [10, 10, 5, 1]
    assert [len(segment) for segment in segments(CHECKS)] == [10, 2]


async def test_a_batch_is_written_some_seconds_after_its_first_row(
    virtual_time: VirtualTimeLoop, directory: Path, segments: Segments
) -> None:
    async with (
        JournalWriter(directory, max_seconds=2) as journal,
        Purgatory(observers=[journal]) as held,
    ):
        assert virtual_time.idle_for() is None
        await asyncio.sleep(100)
        complete(held)
        assert virtual_time.idle_for() == 2
        await asyncio.sleep(1.9)
        held.check_and_complete("key")
        assert segments(OPERATIONS) == segments(CHECKS) == []
        await asyncio.sleep(0.2)
        assert (len(segments(OPERATIONS)), len(segments(CHECKS))) == (1, 1)
        # With nothing noted down, nothing is waited for.
        assert virtual_time.idle_for() is None
        held.check_and_complete("key")
        await asyncio.sleep(2.1)
        assert (len(segments(OPERATIONS)), len(segments(CHECKS))) == (1, 2)


async def test_what_does_not_fit_while_the_disk_is_slow_is_counted_as_a_gap(
    virtual_time: VirtualTimeLoop, directory: Path, disk: Disk, segments: Segments, rows: Rows
) -> None:
    async with (
        JournalWriter(directory, node="n1", max_rows=10, max_buffered=25) as journal,
        Purgatory(observers=[journal]) as held,
    ):
        disk.free.clear()
        # Twice ten wait for the disk, and ten more are gathered.
        complete(held, times=30)
        for lost in range(1, 4):
            virtual_time._now = float(lost)
            complete(held)
        for _ in range(13):
            held.check_and_complete("key")
        # Told at once, and not when the disk is there again.
        assert (journal.lost_operations, journal.lost_checks) == (3, 3)
        disk.free.set()
        await asyncio.sleep(0.1)
        # There is room again; what was lost is told with the batch that was full.
        complete(held, times=5)
    assert [len(segment) for segment in segments(OPERATIONS)] == [10, 10, 10, 5]
    assert [len(segment) for segment in segments(CHECKS)] == [10]
    [gap] = rows(GAPS)
    assert gap["ended"] - gap["began"] == timedelta(seconds=2)
    assert (gap["node"], gap["lost_operations"], gap["lost_checks"]) == ("n1", 3, 3)


async def test_a_batch_that_is_more_than_may_wait_is_written_nevertheless(
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


async def test_a_full_disk_harms_nobody_is_logged_once_and_becomes_a_gap(
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
            f"the journal in {directory} cannot be written, and rows are lost until it can be: "
            "OSError: [Errno 28] No space left on device",
        ),
        (logging.WARNING, f"the journal in {directory} can be written again"),
    ]


async def test_where_directories_cannot_be_synced_nothing_is_lost_and_it_is_said_once(
    virtual_time: VirtualTimeLoop, directory: Path, disk: Disk, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    disk.files_alone = True
    async with JournalWriter(directory, max_rows=2) as journal, Purgatory(observers=[journal]) as held:
        complete(held, times=6)
    assert len(rows(OPERATIONS)) == 6
    assert rows(GAPS) == []
    assert journal.lost_operations == 0
    assert caplog.messages == [
        f"the journal in {directory} cannot sync its directories, so a crash of the machine may take "
        "its last segments away: [Errno 22] Invalid argument"
    ]


async def test_what_is_missing_in_the_end_is_logged(
    virtual_time: VirtualTimeLoop, directory: Path, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    async with JournalWriter(directory) as journal, Purgatory(observers=[journal]) as held:
        disk.full = True
        complete(held, times=3)
        held.check_and_complete("key")
    assert caplog.messages[1:] == [
        f"the journal in {directory} ends without 3 operations and 1 checks, and without a word about it"
    ]
    assert unfinished(directory) == []


async def test_a_directory_that_is_removed_is_lost_until_it_is_there_again(
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
        # Which fails if it was there.
        os.mkdir(directory)
        complete(held)
    assert len(rows(OPERATIONS)) == 1
    assert [gap["lost_operations"] for gap in rows(GAPS)] == [1]
    assert len(caplog.messages) == 2


class Unspeakable:
    def __str__(self) -> NoReturn:
        raise ValueError("no words")


async def test_keys_and_names_that_are_no_text_do_not_stop_the_journal(
    virtual_time: VirtualTimeLoop, directory: Path, rows: Rows
) -> None:
    class Shouting(str):
        def encode(self, encoding: str = "", errors: str = "") -> bytes:
            raise ValueError("no")

        def __str__(self) -> str:
            return self

    async with (
        JournalWriter(directory, node="host\udcff") as journal,
        Purgatory("p\udcff", observers=[journal]) as held,
    ):
        held.try_complete_else_watch(Gate(opened=True), [Unspeakable(), "\ud800", b"\xff", Shouting("é")])
        held.check_and_complete("\ud800")
    [row] = rows(OPERATIONS)
    assert (row["node"], row["purgatory"]) == ("host\\udcff", "p\\udcff")
    assert row["keys"] == ["<Unspeakable whose str() raised ValueError>", "\\ud800", "b'\\xff'", "é"]
    assert [row["key"] for row in rows(CHECKS)] == ["\\ud800"]


def test_what_is_being_written_begins_with_a_dot(directory: Path, disk: Disk) -> None:
    def look() -> None:
        while not unfinished(directory):
            hold_the_loop(0.001)
        assert list(directory.rglob("*.parquet")) == []

    async def serve() -> None:
        async with JournalWriter(directory, max_rows=1) as journal, Purgatory(observers=[journal]) as held:
            disk.free.clear()
            complete(held)
            look()
            disk.free.set()

    asyncio.run(serve())
    assert unfinished(directory) == []
    assert len(list(directory.rglob("*.parquet"))) == 1


async def test_no_operation_is_kept(
    virtual_time: VirtualTimeLoop, directory: Path, collector_off: None, rows: Rows
) -> None:
    class Referable(Gate):
        pass

    async with JournalWriter(directory) as journal, Purgatory(observers=[journal]) as held:
        operation = Referable()
        gone = weakref.ref(operation)
        held.try_complete_else_watch(operation, ["key"]).force_complete()
        del operation
        assert gone() is None
    assert len(rows(OPERATIONS)) == 1


async def test_leaving_writes_what_is_left_and_leaves_nothing_running(
    virtual_time: VirtualTimeLoop, directory: Path, rows: Rows
) -> None:
    before = asyncio.all_tasks()
    held = Purgatory()
    async with JournalWriter(directory) as journal:
        held = Purgatory(observers=[journal])
        held.start()
        complete(held, times=3)
        assert len(threads()) == 1
        assert asyncio.all_tasks() - before
    assert len(rows(OPERATIONS)) == 3
    assert threads() == []
    assert virtual_time.idle_for() is None
    # Not recorded any more, and not kept, and no harm to those who have not noticed.
    complete(held)
    key = Unspeakable()
    gone = weakref.ref(key)
    held.try_complete_else_watch(Gate(opened=True), [key])
    held.check_and_complete(key)
    del key
    assert gone() is None
    held.check_and_complete("key")
    assert virtual_time.idle_for() is None
    await held.aclose()
    assert asyncio.all_tasks() == before
    assert (len(rows(OPERATIONS)), rows(CHECKS)) == (3, [])


async def test_what_ends_before_the_journal_is_opened_is_not_recorded(
    virtual_time: VirtualTimeLoop, directory: Path, rows: Rows
) -> None:
    journal = JournalWriter(directory)
    async with Purgatory(observers=[journal]) as held:
        complete(held)
        held.check_and_complete("key")
        async with journal:
            complete(held, times=2)
    assert (len(rows(OPERATIONS)), rows(CHECKS)) == (2, [])


def test_an_empty_journal_is_three_empty_directories(directory: Path) -> None:
    async def nothing_happens() -> None:
        async with JournalWriter(directory):
            pass

    asyncio.run(nothing_happens())
    assert sorted(path.name for path in directory.iterdir()) == sorted([OPERATIONS, CHECKS, GAPS])
    assert not [path for path in directory.rglob("*") if path.is_file()]


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
                # The journal is left first, so that it is what the cancellations find.
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
    # Of which anyio's would come again and again.
    assert len(waits) == (4 if cancel == "task" else 1)
    await wait([serving])
    assert serving.cancelled() is (cancel == "task")
    assert len(cancelled) == 1
    assert len(rows(OPERATIONS)) == 3
    assert threads() == []


async def test_entering_that_is_cancelled_holds_nobody_up_while_the_disk_does(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, free = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    make = Path.mkdir

    def make_when_free(*arguments: Any, **options: Any) -> None:
        loop.call_soon_threadsafe(begun.set)
        free.wait()
        make(*arguments, **options)

    async def enter() -> None:
        async with JournalWriter(directory):
            raise AssertionError

    monkeypatch.setattr(Path, "mkdir", make_when_free)
    entering = asyncio.create_task(enter())
    await begun.wait()
    entering.cancel()
    # Which would not come back if the loop waited for the disk.
    await a_few_turns()
    assert not entering.done()
    free.set()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert threads() == []


async def test_a_directory_that_cannot_be_made_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        async with JournalWriter(tmp_path / "file" / "journal"):
            pass
    assert threads() == []


async def test_a_writer_is_entered_once(directory: Path) -> None:
    journal = JournalWriter(directory, node="n1")
    assert repr(journal) == f"<JournalWriter {str(directory)!r} new waiting=0>"
    async with journal:
        assert repr(journal) == f"<JournalWriter {str(directory)!r} open waiting=0>"
    assert repr(journal) == f"<JournalWriter {str(directory)!r} closed waiting=0>"
    with pytest.raises(RuntimeError, match="was entered before"):
        await journal.__aenter__()


@pytest.mark.parametrize(
    ("limits", "complaint"),
    [
        ({"max_rows": 0}, "max_rows must be at least 1, not 0"),
        ({"max_seconds": 0}, "max_seconds must be a positive number of seconds, not 0"),
        ({"max_seconds": float("nan")}, "max_seconds must be a positive number of seconds, not nan"),
        ({"max_buffered": 0}, "max_buffered must be at least 1, not 0"),
    ],
)
def test_limits_that_make_no_sense_are_refused(directory: Path, limits: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        JournalWriter(directory, **limits)


async def test_rows_keep_their_order_however_many_are_converted_at_a_time(
    virtual_time: VirtualTimeLoop, directory: Path, rows: Rows
) -> None:
    async with JournalWriter(directory) as journal, Purgatory(observers=[journal]) as held:
        for number in range(3_000):
            held.try_complete_else_watch(Gate(opened=True), [number])
            held.check_and_complete(number)
    ids = [row["operation_id"] for row in rows(OPERATIONS)]
    assert [number - ids[0] for number in ids] == list(range(3_000))
    assert [row["keys"] for row in rows(OPERATIONS)] == [[str(number)] for number in range(3_000)]
    assert [row["key"] for row in rows(CHECKS)] == [str(number) for number in range(3_000)]
