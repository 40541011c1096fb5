"""The rows that a journal has of operations and checks."""

from __future__ import annotations

import asyncio
import time
import weakref
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from purgatory import DelayedValue, Purgatory
from purgatory.journal import JournalWriter
from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS, SCHEMAS
from purgatory.journal.table import SCHEMA_VERSION, VERSION_KEY
from purgatory.testing import VirtualTimeLoop
from tests.journal.conftest import Rows
from tests.journal.fakes import Disk, UnprintableKey, block_the_loop, complete
from tests.operations import Gate, raising


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
    assert (journal.lost_operations, journal.lost_checks) == (0, 0)
    first, second = rows(CHECKS)
    assert second["checked"] - first.pop("checked") == timedelta(seconds=1)
    assert first == {"node": "n1", "purgatory": "fetch", "key": "a", "tried": 2, "completed": 1}
    assert (second["key"], second["tried"], second["completed"]) == ("('nobody', 1)", 0, 0)


async def test_each_outcome_is_recorded_with_its_timeout_and_lateness(
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
        # Without a deadline there is no lateness.
        ("expired", 0, None),
        ("expired", 0, None),
        # The deadline is rounded up to a tick of a millisecond.
        ("expired", 1_000_001, 1_000),
        ("expired", 2_000_000, 0),
        # Closing expires pending operations.
        ("expired", 60_000_000, None),
        ("expired", None, None),
        ("expired", None, None),
    ]
    assert [row["keys"] for row in rows(OPERATIONS)] == [["a"]] * 9 + [["a", "b"]]
    assert len(reported) == 1


async def test_times_are_utc_on_every_loop(directory: Path, rows: Rows) -> None:
    # uvloop does not update its time meanwhile.
    block_the_loop(0.005)
    async with JournalWriter(directory) as journal, Purgatory(observers=[journal]) as held:
        before = datetime.now(UTC)
        complete(held)
        held.check_and_complete("key")
        after = datetime.now(UTC)
    # uvloop's time is up to a millisecond behind, and constant within a turn: it would be too early.
    room = timedelta(microseconds=100)
    assert before - room < rows(OPERATIONS)[0]["started"] < after + room
    assert before - room < rows(CHECKS)[0]["checked"] < after + room


async def test_times_are_right_when_the_thread_is_stopped_between_the_readings_of_the_clocks(
    directory: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops = iter([0.01, 0.01])
    wall_clock = time.time

    def interrupted() -> float:
        now = wall_clock()
        block_the_loop(next(stops, 0.0))
        return now

    monkeypatch.setattr(time, "time", interrupted)
    async with JournalWriter(directory) as journal, Purgatory(observers=[journal]) as held:
        before = datetime.now(UTC)
        complete(held)
    room = timedelta(milliseconds=5)
    assert before - room < rows(OPERATIONS)[0]["started"]
    assert next(stops, None) is None


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


async def test_a_segment_has_the_schema_and_its_version(
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


async def test_keys_and_names_without_a_valid_str_are_escaped(
    virtual_time: VirtualTimeLoop, directory: Path, rows: Rows
) -> None:
    class Shouting(str):
        def encode(self, encoding: str = "", errors: str = "") -> bytes:
            raise ValueError("no")

        def __str__(self) -> str:
            return self

    class Job:
        def __str__(self) -> str:
            raise asyncio.CancelledError

    async with (
        JournalWriter(directory, node="host\udcff") as journal,
        Purgatory("p\udcff", observers=[journal]) as held,
    ):
        held.try_complete_else_watch(Gate(opened=True), [UnprintableKey(), "\ud800", b"\xff", Shouting("é")])
        held.try_complete_else_watch(Gate(opened=True), [Job()])
        held.check_and_complete("\ud800")
    [row, of_job] = rows(OPERATIONS)
    assert of_job["keys"] == ["<Job whose str() raised CancelledError>"]
    assert (row["node"], row["purgatory"]) == ("host\\udcff", "p\\udcff")
    assert row["keys"] == ["<UnprintableKey whose str() raised ValueError>", "\\ud800", "b'\\xff'", "é"]
    assert [row["key"] for row in rows(CHECKS)] == ["\\ud800"]


async def test_rows_keep_their_order_across_chunks(
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


async def test_no_reference_to_an_operation_is_kept(
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


async def test_an_operation_without_a_key_is_recorded_without_keys(directory: Path, rows: Rows) -> None:
    async with JournalWriter(directory) as journal, Purgatory(observers=[journal]) as held:
        value = held.try_complete_else_watch(DelayedValue[int](None))
        named = held.try_complete_else_watch(DelayedValue[int](None))
        held.watch_also(named, ["a"])
        for each in (value, named):
            each.complete(7)
    assert [(row["kind"], row["keys"]) for row in rows(OPERATIONS)] == [
        ("DelayedValue", []),
        ("DelayedValue", ["a"]),
    ]
