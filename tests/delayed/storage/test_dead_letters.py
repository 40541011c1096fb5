"""Messages that were set aside."""

from __future__ import annotations

import errno
from contextlib import closing
from pathlib import Path

import pytest

from purgatory.delayed import DeadLetter
from purgatory.delayed.message import Message
from purgatory.delayed.storage.dead_letters import DeadLetters
from purgatory.delayed.storage.frames import Kind, encode, message_body
from purgatory.delayed.storage.requests import StoreFailed
from tests.delayed.storage.simulated_disk import NOTHING, SimulatedDisk

PATH = Path("/dead-letters")


def test_letters_are_read_in_the_order_in_which_they_were_added() -> None:
    disk = SimulatedDisk()
    letters = DeadLetters(disk, PATH, 7)
    assert list(letters.read()) == []
    letters.add(Message(1, 1_500, "the id", b"payload", 0), "no")
    letters.add(Message(2, 2_500, None, b"", 3), "\ud800" + "ß" * 1_000)
    after = DeadLetters(disk.after_power_cut(NOTHING), PATH, 7)
    assert list(after.read()) == [
        DeadLetter("the id", 1.5, b"payload", "no"),
        # A reason has at most 1,000 bytes, and only whole characters.
        DeadLetter(f"{2:016x}", 2.5, b"", "?" + "ß" * 499),
    ]
    assert disk.opened == 0


def test_a_reason_that_an_earlier_release_has_cut_within_a_character_is_read() -> None:
    disk = SimulatedDisk()
    reason = "to ß".encode()[:-1]
    body = len(reason).to_bytes(2, "little") + reason + message_body("the id", b"payload")
    with closing(disk.open(PATH)) as file:
        file.append(encode(7, Kind.DEAD, 1_500, 1, body))
    letter = DeadLetter("the id", 1.5, b"payload", "to \ufffd")
    assert list(DeadLetters(disk, PATH, 7).read()) == [letter]


def test_only_the_first_letter_syncs_the_directory() -> None:
    disk = SimulatedDisk()
    letters = DeadLetters(disk, PATH, 7)
    disk.fail("sync_directory", errno.EMFILE)
    with pytest.raises(StoreFailed):
        letters.add(Message(1, 0, None, b"refused", 0), "no")
    operations: list[str] = []
    disk.watch = operations.append
    for number in range(3):
        letters.add(Message(number, 0, None, b"%d" % number, 0), "no")
    assert (operations.count("sync_directory"), operations.count("sync")) == (1, 3)
    after = DeadLetters(disk.after_power_cut(NOTHING), PATH, 7)
    assert [letter.payload for letter in after.read()] == [b"0", b"1", b"2"]


def test_a_damaged_letter_hides_no_other() -> None:
    disk = SimulatedDisk()
    letters = DeadLetters(disk, PATH, 7)
    for number in range(3):
        letters.add(Message(number, 0, None, b"payload %d" % number, 0), "no")
    data = disk.content(PATH).data
    data[data.index(b"payload 1")] ^= 1
    assert [letter.payload for letter in letters.read()] == [b"payload 0", b"payload 2"]


def test_a_letter_that_does_not_fit_is_refused() -> None:
    disk = SimulatedDisk()
    letters = DeadLetters(disk, PATH, 7)
    disk.capacity = 30
    with pytest.raises(OSError, match="No space"):
        letters.add(Message(1, 0, None, b"payload", 0), "no")
    assert list(letters.read()) == []
    assert disk.opened == 0
