"""A writer is entered and left, and writes a batch when it is due."""

from __future__ import annotations

import asyncio
import weakref
from pathlib import Path
from typing import Any

import pytest

from purgatory import Purgatory
from purgatory.journal import JournalWriter
from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS
from purgatory.testing import VirtualTimeLoop
from tests.journal.conftest import Rows, Segments
from tests.journal.fakes import UnprintableKey, complete, threads
from tests.operations import Gate


async def test_a_writer_can_be_entered_once(directory: Path) -> None:
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
def test_limits_that_are_not_positive_are_refused(directory: Path, limits: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        JournalWriter(directory, **limits)


def test_an_empty_journal_is_three_empty_directories(directory: Path) -> None:
    async def nothing_happens() -> None:
        async with JournalWriter(directory):
            pass

    asyncio.run(nothing_happens())
    assert sorted(path.name for path in directory.iterdir()) == sorted([OPERATIONS, CHECKS, GAPS])
    assert not [path for path in directory.rglob("*") if path.is_file()]


async def test_operations_that_end_before_the_journal_is_entered_are_not_recorded(
    virtual_time: VirtualTimeLoop, directory: Path, rows: Rows
) -> None:
    journal = JournalWriter(directory)
    async with Purgatory(observers=[journal]) as held:
        complete(held)
        held.check_and_complete("key")
        async with journal:
            complete(held, times=2)
    assert (len(rows(OPERATIONS)), rows(CHECKS)) == (2, [])


async def test_a_batch_is_written_when_it_has_max_rows(
    virtual_time: VirtualTimeLoop, directory: Path, segments: Segments
) -> None:
    async with (
        JournalWriter(directory, max_rows=10) as journal,
        Purgatory(observers=[journal]) as held,
    ):
        complete(held, times=25)
        # The list of operations was full twice; this fills the list of checks.
        for _ in range(12):
            held.check_and_complete("key")
        complete(held)
    assert [len(segment) for segment in segments(OPERATIONS)] == [10, 10, 5, 1]
    assert [len(segment) for segment in segments(CHECKS)] == [10, 2]


async def test_a_batch_is_written_max_seconds_after_its_first_row(
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
        # While no row is recorded, no timer runs.
        assert virtual_time.idle_for() is None
        held.check_and_complete("key")
        await asyncio.sleep(2.1)
        assert (len(segments(OPERATIONS)), len(segments(CHECKS))) == (1, 2)


async def test_leaving_writes_the_remaining_rows_and_leaves_nothing_running(
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
    # After leaving, nothing is recorded and no reference is kept; the purgatory goes on.
    complete(held)
    key = UnprintableKey()
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
