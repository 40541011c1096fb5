"""The write-ahead log and its segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from purgatory.delayed.storage.frames import Damage, Frame, Kind, encode
from purgatory.delayed.storage.log import Log
from tests.delayed.storage.simulated_disk import EVERYTHING, NOTHING, SimulatedDisk

DIRECTORY = Path("/wal")
SALT = 7


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory(DIRECTORY)
    return disk


def opened(disk: SimulatedDisk, next_number: int) -> Log:
    log = Log(disk, DIRECTORY, SALT)
    log.go_on_after(next_number - 1)
    return log


@pytest.fixture
def log(disk: SimulatedDisk) -> Log:
    return opened(disk, 5)


def frame(number: int) -> bytes:
    return encode(SALT, Kind.SOON, number, number, b"body")


def tokens(log: Log, number: int) -> list[int]:
    return [found.token for found in log.read(number) if isinstance(found, Frame)]


def test_what_was_appended_is_read_from_its_segment(disk: SimulatedDisk, log: Log) -> None:
    assert log.append(frame(1)) == (5, 0)
    assert log.append(frame(2)) == (5, len(frame(1)))
    assert log.seal() == 5
    assert log.seal() == 5
    assert log.append(frame(3)) == (6, 0)
    assert tokens(log, 5) == [1, 2]
    assert tokens(log, 6) == [3]
    assert tokens(log, 7) == []
    assert Log(disk, DIRECTORY, SALT).numbers() == [5, 6]
    assert log.written == 3 * len(frame(1))
    log.remove_oldest(5, ())
    log.remove_oldest(5, ())
    assert Log(disk, DIRECTORY, SALT).numbers() == [6]
    assert tokens(log, 5) == []
    log.seal()
    assert disk.opened == 0


def test_what_was_appended_survives_a_power_cut(disk: SimulatedDisk, log: Log) -> None:
    log.append(frame(1))
    log.append(frame(2))
    for survival in (NOTHING, EVERYTHING):
        after = opened(disk.after_power_cut(survival), 9)
        assert tokens(after, 5) == [1, 2]


def test_a_removed_segment_does_not_come_back(disk: SimulatedDisk, log: Log) -> None:
    log.append(frame(1))
    log.seal()
    log.remove_oldest(5, ())
    assert Log(disk.after_power_cut(NOTHING), DIRECTORY, SALT).numbers() == []


def test_the_oldest_segments_are_removed_up_to_one_that_is_needed(log: Log) -> None:
    for number in range(4):
        log.append(frame(number))
        log.seal()
    log.remove_oldest(7, [6, 8])
    assert log.numbers() == [6, 7, 8]
    log.remove_oldest(7, [8])
    assert log.numbers() == [8]
    log.remove_oldest(8, [])
    assert log.numbers() == []


def test_a_long_segment_is_sealed(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purgatory.delayed.storage.log._SEGMENT", 100)
    assert [log.append(frame(number))[0] for number in range(10)] == [5] * 4 + [6] * 4 + [7] * 2


def test_what_does_not_fit_leaves_nothing(disk: SimulatedDisk, log: Log) -> None:
    log.append(frame(1))
    disk.capacity = disk.used + 20
    with pytest.raises(OSError, match="No space"):
        log.append(frame(2))
    disk.capacity = None
    assert log.append(frame(3)) == (5, len(frame(1)))
    assert [type(found) for found in log.read(5)] == [Frame, Frame]


def test_the_first_segment_that_does_not_fit_is_used_later(disk: SimulatedDisk, log: Log) -> None:
    disk.capacity = disk.used
    with pytest.raises(OSError, match="No space"):
        log.append(frame(1))
    disk.capacity = None
    assert log.append(frame(2)) == (5, 0)


def test_a_segment_that_cannot_be_closed_has_ended(disk: SimulatedDisk, log: Log) -> None:
    log.append(frame(1))
    disk.fail("close")
    with pytest.raises(OSError, match="Input/output error"):
        log.seal()
    assert log.seal() == 5
    assert log.append(frame(2)) == (6, 0)
    assert tokens(log, 5) == [1]


def test_damage_is_reported_with_its_place(disk: SimulatedDisk, log: Log) -> None:
    for number in range(3):
        log.append(frame(number))
    size = len(frame(0))
    disk.content(DIRECTORY / "00000005").data[size + 3] ^= 1
    assert list(log.read(5))[1] == Damage(size, 2 * size)


def test_names_that_are_no_segments_are_left_alone(disk: SimulatedDisk) -> None:
    for name in ("00000012", "00000003", "123456789", "00000004.new", "note"):
        disk.open(DIRECTORY / name)
    assert Log(disk, DIRECTORY, SALT).numbers() == [3, 12, 123456789]
