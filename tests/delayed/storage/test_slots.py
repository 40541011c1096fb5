"""The files of the wheel, and blocks that take the place of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from purgatory.delayed.storage.frames import HEADER_SIZE, Kind, encode
from purgatory.delayed.storage.requests import StoreFailed
from purgatory.delayed.storage.slots import SlotFiles
from tests.delayed.storage.simulated_disk import NOTHING, SimulatedDisk

DIRECTORY = Path("/slots")
SALT = 7
HOUR = 3_600_000


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def slots(disk: SimulatedDisk) -> SlotFiles:
    return SlotFiles(disk, DIRECTORY, SALT, 1_000)


def message(token: int, due: int = 5_500) -> bytes:
    return encode(SALT, Kind.LATER, due, token, b"\0\0payload")


def write(slots: SlotFiles, number: int, after: int, frames: dict[int, list[bytes]]) -> None:
    with slots._disk.appending() as append:
        slots.write(number, after, frames, append)


def end(token: int, kind: Kind = Kind.CANCELLED) -> bytes:
    return encode(SALT, kind, 5_500, token, b"\0\0")


def tokens(disk: SimulatedDisk, slots: SlotFiles, slot: int = 5) -> list[int]:
    """The messages that are still to come, in the order of their due times."""
    data = disk.content(path(slot)).data
    found = sorted(slots.find(slot).pending(), key=lambda message: message[0])
    for _, offset, token, _ in found:
        assert token == int.from_bytes(data[offset + HEADER_SIZE - 8 : offset + HEADER_SIZE], "little")
    return [token for _, _, token, _ in found]


def path(slot: int) -> Path:
    return DIRECTORY / str(slot * 1_000 // HOUR) / str(slot * 1_000)


def test_other_threads_run_while_many_messages_are_indexed(
    disk: SimulatedDisk, slots: SlotFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("purgatory.delayed.storage.frames.sleep", pauses.append)
    write(slots, 1, 0, {5: [message(token) for token in range(1_000)]})
    assert tokens(disk, slots) == list(range(1_000))
    assert len(pauses) >= 4


def test_a_slot_is_named_by_its_hour_and_its_start(disk: SimulatedDisk, slots: SlotFiles) -> None:
    assert [slots.slot_of(due) for due in (-5, 0, 999, 1_000, 10 * HOUR + 999)] == [0, 0, 0, 1, 36_000]
    write(slots, 1, 0, {0: [message(1)], 36_000: [message(2)]})
    assert disk.names(DIRECTORY) == ["0", "10"]
    assert disk.names(DIRECTORY / "10") == [str(10 * HOUR)]
    assert slots.present(36_000) == [0]
    assert slots.present(36_001) == [0, 36_000]
    assert slots.written == 2 * (HEADER_SIZE + len(message(1)))


def test_what_was_written_survives_a_power_cut(disk: SimulatedDisk, slots: SlotFiles) -> None:
    write(slots, 1, 0, {5: [message(1)], 3_605: [message(2)]})
    write(slots, 2, 1, {5: [message(3)]})
    after = disk.after_power_cut(NOTHING)
    again = SlotFiles(after, DIRECTORY, SALT, 1_000)
    assert again.present(9_999) == [5, 3_605]
    assert tokens(after, again) == [1, 3]


def test_messages_keep_the_order_in_which_they_were_written(disk: SimulatedDisk, slots: SlotFiles) -> None:
    write(slots, 1, 0, {5: [message(1, 5_900), message(2, 5_100), message(3, 5_900)]})
    write(slots, 2, 1, {5: [message(4, 5_100)]})
    assert tokens(disk, slots) == [2, 4, 1, 3]


@pytest.mark.parametrize("kind", [Kind.CANCELLED, Kind.DELIVERED])
def test_what_has_ended_is_not_found_wherever_its_end_is(
    disk: SimulatedDisk, slots: SlotFiles, kind: Kind
) -> None:
    write(slots, 1, 0, {5: [message(1), end(2, kind), message(2), message(3)]})
    write(slots, 2, 1, {5: [end(1, kind), end(9, kind)]})
    assert tokens(disk, slots) == [3]


def test_a_block_takes_the_place_of_those_of_its_segments(disk: SimulatedDisk, slots: SlotFiles) -> None:
    write(slots, 1, 0, {5: [message(1)]})
    # The power went off behind these. Their segments are still in the log.
    write(slots, 2, 1, {5: [message(2)]})
    write(slots, 3, 2, {5: [message(3), message(4)]})
    write(slots, 4, 1, {5: [message(2), message(4)]})
    assert tokens(disk, slots) == [1, 2, 4]
    # And again.
    write(slots, 4, 1, {5: [message(2), message(4)]})
    write(slots, 5, 4, {5: [message(5)]})
    assert tokens(disk, slots) == [1, 2, 4, 5]


def test_a_block_takes_the_place_of_a_torn_one_without_a_report(
    disk: SimulatedDisk, slots: SlotFiles
) -> None:
    whole = encode(SALT, Kind.BLOCK, 2, 1) + message(2) + message(3)
    for cut in range(len(whole) + 1):
        slots.remove(5)
        write(slots, 1, 0, {5: [message(1)]})
        file = disk.open(path(5))
        file.append(whole[:cut])
        file.close()
        write(slots, 2, 1, {5: [message(2), message(3)]})
        found = slots.find(5)
        assert tokens(disk, slots) == [1, 2, 3]
        # Before its first frame is whole, nothing says that it is a block.
        assert (found.damaged == []) or 0 < cut < HEADER_SIZE


def test_a_block_whose_start_is_lost_is_not_found_twice(disk: SimulatedDisk, slots: SlotFiles) -> None:
    write(slots, 1, 0, {5: [message(1)]})
    start = len(disk.content(path(5)).data)
    write(slots, 2, 1, {5: [message(2), message(3)]})
    disk.content(path(5)).data[start : start + HEADER_SIZE] = bytes(HEADER_SIZE)
    write(slots, 2, 1, {5: [message(2), message(3)]})
    assert sorted(tokens(disk, slots)) == [1, 2, 3]
    assert len(slots.find(5).damaged) == 1


def test_a_frame_of_a_later_release_is_left_alone(disk: SimulatedDisk, slots: SlotFiles) -> None:
    write(slots, 1, 0, {5: [message(1), encode(SALT, 99, 5_500, 1), message(2)]})
    assert tokens(disk, slots) == [1, 2]
    assert slots.find(5).damaged == []


def test_a_slot_without_a_file_is_empty(disk: SimulatedDisk, slots: SlotFiles) -> None:
    assert list(slots.find(5).pending()) == []
    assert slots.present(9_999) == []
    assert not slots.exists(5)
    slots.remove(5)


def test_names_that_are_no_slots_are_left_alone(disk: SimulatedDisk, slots: SlotFiles) -> None:
    disk.make_directory(DIRECTORY / "lost+found")
    write(slots, 1, 0, {5: [message(1)]})
    disk.open(DIRECTORY / "0" / "5000.bak")
    assert slots.present(9_999) == [5]


def test_a_removed_slot_does_not_come_back(disk: SimulatedDisk, slots: SlotFiles) -> None:
    write(slots, 1, 0, {5: [message(1)], 6: [message(2)]})
    slots.remove(5)
    assert disk.names(DIRECTORY) == ["0"]
    assert SlotFiles(disk.after_power_cut(NOTHING), DIRECTORY, SALT, 1_000).present(9_999) == [6]
    slots.remove(6)
    assert disk.names(DIRECTORY) == []
    slots.remove(6)
    write(slots, 2, 1, {6: [message(3)]})
    assert tokens(disk, slots, 6) == [3]


def test_a_full_disk_leaves_no_file_open(disk: SimulatedDisk, slots: SlotFiles) -> None:
    disk.capacity = 10
    with pytest.raises(OSError, match="No space"):
        write(slots, 1, 0, {5: [message(1)]})
    disk.capacity = None
    disk.fail("sync")
    with pytest.raises(StoreFailed):
        write(slots, 1, 0, {5: [message(1)]})
    assert disk.opened == 0
