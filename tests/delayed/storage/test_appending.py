"""Appends to several files, and taking them back."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from purgatory.delayed.storage.requests import StoreFailed
from tests.delayed.storage.simulated_disk import NOTHING, SimulatedDisk

FIRST, SECOND = Path("/first"), Path("/second")


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    for path in (FIRST, SECOND):
        file = disk.open(path)
        file.append(b"before")
        file.sync()
        file.close()
    disk.sync_directory(FIRST.parent)
    return disk


def test_what_was_appended_is_on_the_disk_behind_the_block(disk: SimulatedDisk) -> None:
    with disk.appending() as append:
        assert append(FIRST, b"after", 1) == 11
        assert append(SECOND, b"after", 4) == 13
    after = disk.after_power_cut(NOTHING)
    assert after.content(FIRST).data == b"beforeafter"
    assert after.content(SECOND).data == b"before\0\0after"
    assert disk.opened == 0


def test_few_files_are_open_at_a_time(disk: SimulatedDisk) -> None:
    with disk.appending() as append:
        for _ in range(200):
            append(FIRST, b"x", 1)
            assert disk.opened < 128
    assert disk.after_power_cut(NOTHING).content(FIRST).data == b"before" + 200 * b"x"


def test_all_of_it_is_taken_back(disk: SimulatedDisk) -> None:
    def fail() -> None:
        with disk.appending() as append:
            append(FIRST, b"after", 1)
            append(FIRST, b"after", 1)
            disk.capacity = disk.used + 3
            append(SECOND, b"after", 1)

    with pytest.raises(OSError, match="No space"):
        fail()
    assert disk.content(FIRST).data == disk.content(SECOND).data == b"before"
    assert disk.opened == 0


def test_what_cannot_be_taken_back_stays(disk: SimulatedDisk) -> None:
    def fail() -> None:
        with disk.appending() as append:
            append(FIRST, b"after", 1)
            append(SECOND, b"after", 1)
            disk.fail("truncate", errno.EIO)
            raise OSError(errno.ENOSPC, "No space left")

    with pytest.raises(OSError, match="No space"):
        fail()
    assert disk.content(FIRST).data == b"before"
    assert disk.content(SECOND).data == b"beforeafter"


def test_a_failed_sync_takes_nothing_back(disk: SimulatedDisk) -> None:
    def fail() -> None:
        with disk.appending() as append:
            append(FIRST, b"after", 1)
            disk.fail("sync")

    with pytest.raises(StoreFailed):
        fail()
    assert disk.content(FIRST).data == b"beforeafter"
    assert disk.opened == 0
