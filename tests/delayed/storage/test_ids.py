"""Which ids are taken, in memory and on the disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from purgatory.delayed.storage.ids import IdRecord, Ids, Over, bucket_of, digest
from tests.delayed.storage.simulated_disk import SimulatedDisk

NOW = 1_700_000_000_000
DIRECTORY = Path("/ids")


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory(DIRECTORY)
    return disk


@pytest.fixture
def ids(disk: SimulatedDisk) -> Ids:
    return Ids(disk, DIRECTORY)


def add(
    ids: Ids, records: Iterable[IdRecord], segment: int = 1, over: Over = lambda due, segment: False
) -> None:
    with ids._disk.appending() as append:
        ids.add(records, segment, over, append)


def taken(id: str, number: int = 0, due: int = NOW) -> IdRecord:
    hashed = digest(id.encode())
    return IdRecord(number * 256 + bucket_of(hashed), due, hashed, digest(b"payload"))


def test_an_id_is_taken_from_its_note_to_the_end_of_its_message(ids: Ids) -> None:
    first, second = taken("id", 1), taken("id", 2)
    assert ids.taken("id") is None
    ids.note(1, first)
    assert ids.taken("id") == first
    ids.note(1, IdRecord(first.token, first.due))
    assert ids.taken("id") is None
    ids.note(2, second)
    assert ids.taken("id") == second


def test_what_is_on_the_disk_is_known_after_it_was_forgotten_in_memory(ids: Ids) -> None:
    first, second = taken("id", 1), taken("other", 2)
    for record in (first, second, IdRecord(second.token, NOW)):
        ids.note(1, record)
    add(ids, [first, second, IdRecord(second.token, NOW)])
    assert ids.taken("id") == first
    ids.spread(1)
    ids.spread(1)
    assert ids.taken("id") == first
    assert ids.taken("other") is None
    assert ids.ended(second.token)
    assert not ids.ended(first.token)


def test_a_message_that_ends_in_another_segment_has_ended(ids: Ids) -> None:
    first = taken("id", 1)
    add(ids, [first])
    ids.note(2, IdRecord(first.token, NOW))
    assert ids.taken("id") is None


def test_a_search_reads_its_bucket_once_however_often_the_id_was_used(disk: SimulatedDisk, ids: Ids) -> None:
    def operations() -> list[str]:
        seen: list[str] = []
        disk.watch = seen.append
        assert ids.taken("id") == newest
        disk.watch = lambda _: None
        return seen

    newest = taken("id", 1)
    add(ids, [newest])
    once = operations()
    for number in range(2, 100):
        add(ids, [IdRecord(newest.token, NOW), newest := taken("id", number)])
    assert operations() == once
    # What is in memory needs no file.
    for number in range(100, 200):
        ids.note(number // 10, IdRecord(newest.token, NOW))
        ids.note(number // 10, newest := taken("id", number))
    assert operations() == []


def test_an_id_whose_newest_message_has_ended_is_free(ids: Ids) -> None:
    first, second = taken("id", 1), taken("id", 2)
    add(ids, [first, IdRecord(first.token, NOW), second])
    assert ids.taken("id") == second
    # The records of a segment are written again when a crash comes before its checkpoint.
    add(ids, [first, IdRecord(first.token, NOW), second, IdRecord(second.token, NOW)])
    assert ids.taken("id") is None


def test_ids_of_one_bucket_are_told_apart(ids: Ids) -> None:
    names = [name for name in map(str, range(3_000)) if bucket_of(digest(name.encode())) == 7]
    assert len(names) > 3
    add(ids, [taken(name, number) for number, name in enumerate(names)])
    for number, name in enumerate(names):
        found = ids.taken(name)
        assert found is not None
        assert found.token // 256 == number
    assert ids.taken("another") is None


def test_a_number_that_spans_two_fields_is_no_record(ids: Ids) -> None:
    # The due time and the hash of the id contain the bytes of another token.
    token = (5).to_bytes(8, "little")
    due = int.from_bytes(b"\0\0\0\0" + token[:4], "little")
    hashed = int.from_bytes(token[4:] + b"\0\0\0\1", "little")
    add(ids, [IdRecord(256 + bucket_of(5), due, hashed, 1), IdRecord(bucket_of(5) + 512, NOW)])
    assert not ids.ended(5)


def test_a_damaged_record_is_no_record(disk: SimulatedDisk, ids: Ids) -> None:
    first = taken("id", 1)
    add(ids, [first])
    file = disk.content(DIRECTORY / f"{bucket_of(first.token):02x}")
    # The first half of a torn record. Without a check it would say that the message has ended.
    file.data[16:] = bytes(len(file.data) - 16)
    assert not ids.ended(first.token)
    assert ids.taken("id") is None
    add(ids, [first])
    assert ids.taken("id") == first


def test_a_part_of_a_record_harms_no_later_one(disk: SimulatedDisk, ids: Ids) -> None:
    first = taken("id", 1)
    add(ids, [first])
    del disk.content(DIRECTORY / f"{bucket_of(first.token):02x}").data[-3:]
    add(ids, [first])
    assert ids.taken("id") == first


def in_one_bucket(count: int) -> list[IdRecord]:
    names = (name for name in map(str, range(300 * count)) if bucket_of(digest(name.encode())) == 0)
    return [taken(name, number) for number, name in zip(range(count), names, strict=False)]


def size(disk: SimulatedDisk) -> int:
    return len(disk.content(DIRECTORY / "00").data)


def test_a_bucket_that_has_grown_is_rewritten_without_ids_whose_messages_have_ended(
    disk: SimulatedDisk, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.storage.ids._REWRITE", 150 * 44)
    records = in_one_bucket(180)
    over, kept, later = records[:50], records[50:100], records[100:]
    add(ids, over)
    add(ids, [IdRecord(record.token, NOW) for record in over])
    # Each record twice, as after a crash.
    add(ids, kept + kept)
    assert size(disk) == (50 + 50) * 44
    assert all(ids.ended(record.token) for record in over)
    assert not any(ids.ended(record.token) for record in kept)
    # Next time when it has twice that size.
    add(ids, later + later[:19])
    assert size(disk) == 199 * 44
    add(ids, later[:1])
    assert size(disk) == 180 * 44


def test_what_is_over_is_forgotten(disk: SimulatedDisk, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purgatory.delayed.storage.ids._REWRITE", 0)
    lost, cancelled, late, pending = in_one_bucket(4)
    add(ids, [lost, cancelled._replace(due=NOW + 1), IdRecord(cancelled.token, NOW + 1)], 1)
    add(ids, [late], 2)
    asked = set()

    def over(due: int, segment: int) -> bool:
        asked.add((due, segment))
        return segment == 1

    add(ids, [pending._replace(due=NOW + 2)], 3, over)
    assert asked == {(NOW, 1), (NOW + 1, 1), (NOW, 2), (NOW + 2, 3)}
    assert size(disk) == 2 * 44
    assert not ids.ended(cancelled.token)


def test_a_damaged_record_is_dropped_when_its_bucket_is_rewritten(
    disk: SimulatedDisk, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third, _ = in_one_bucket(4)
    add(ids, [first, second])
    disk.content(DIRECTORY / "00").data[20] ^= 1
    monkeypatch.setattr("purgatory.delayed.storage.ids._REWRITE", 0)
    add(ids, [third])
    assert size(disk) == 2 * 44
    assert not any(ids.ended(record.token) for record in (first, second, third))


def test_a_bucket_that_cannot_be_written_stays_as_it_is(disk: SimulatedDisk, ids: Ids) -> None:
    add(ids, [taken("id", 1)])
    disk.capacity = disk.used + 10
    with pytest.raises(OSError, match="No space"):
        add(ids, [taken("id", 2)])
    assert ids.taken("id") == taken("id", 1)
    assert disk.opened == 0
