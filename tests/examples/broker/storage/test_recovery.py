"""A log that is read back from its files, whatever a kill or a failing disk has left in them."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.partition_directory import LOG_START_OFFSET, PartitionDirectory
from examples.broker.storage.record_batch import RecordBatch
from tests.examples.broker.full_disk import full_disk
from tests.examples.broker.storage.stored_log import (
    BATCH_BYTES,
    TOPIC_ID,
    batch,
    content,
    filled,
    opened,
    segments,
)

LEADER_EPOCH_AT = range(12, 16)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "broker-1" / "events-0"


def segment(path: Path, base_offset: int) -> Path:
    return path / f"{base_offset:020d}.log"


def test_a_log_that_was_never_written_to_has_no_files(path: Path) -> None:
    assert content(opened(path)) == (0, 0, 1, [])
    assert not path.exists()


def test_a_log_is_read_back_as_it_was(path: Path) -> None:
    log = filled(path, 5)
    assert content(opened(path)) == content(log)
    assert segments(path) == [segment(path, offset).name for offset in (0, 4, 8)]


def test_leader_epochs_and_the_sequences_of_producers_are_read_back(path: Path) -> None:
    log = opened(path)
    for sequence, epoch in ((0, 1), (2, 1), (4, 3)):
        log.append_as_leader(batch(producer=(7, 0, sequence)), epoch)
    log = opened(path)
    assert (log.latest_epoch, log.end_offset_for_epoch(1).end_offset) == (3, 4)
    assert log.append_as_leader(batch(producer=(7, 0, 2)), 3) == 2, "a retry"
    assert log.append_as_leader(batch(producer=(7, 0, 6)), 3) == 6
    with pytest.raises(ApiError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        log.append_as_leader(batch(producer=(7, 0, 10)), 3)


@pytest.mark.parametrize(("batches", "base_offset", "start"), [(2, 0, BATCH_BYTES), (3, 4, 0)])
def test_a_last_batch_that_is_torn_at_any_byte_is_cut_off(
    path: Path, batches: int, base_offset: int, start: int
) -> None:
    """It is the second or the first one of its segment."""
    *whole, _ = filled(path, batches).batches()
    file = segment(path, base_offset)
    data = file.read_bytes()
    for size in range(start, start + BATCH_BYTES):
        file.write_bytes(data[:size])
        assert list(opened(path).batches()) == whole
        assert file.stat().st_size == start
    opened(path).append_as_leader(batch())
    assert file.read_bytes() == data


def test_a_last_batch_with_a_flipped_bit_is_cut_off(path: Path) -> None:
    """Only the leader epoch has no checksum and no second copy, as in Kafka."""
    filled(path, 2)
    file = segment(path, 0)
    whole = file.read_bytes()
    for at in {*range(BATCH_BYTES)} - {*LEADER_EPOCH_AT}:
        flipped = bytearray(whole)
        flipped[BATCH_BYTES + at] ^= 1 << at % 8
        file.write_bytes(flipped)
        assert opened(path).log_end_offset == 2, at
        assert file.read_bytes() == whole[:BATCH_BYTES]


def test_damage_in_the_middle_ends_the_log_there_and_is_logged(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled(path, 6)
    with segment(path, 4).open("r+b") as file:
        file.seek(BATCH_BYTES - 1)
        file.write(b"?")
    assert content(opened(path))[:3] == (0, 4, 2)
    assert segments(path) == [segment(path, offset).name for offset in (0, 4)]
    cut, removed = caplog.messages
    assert f"{path}: cut off {2 * BATCH_BYTES} bytes after offset 4: CORRUPT_MESSAGE" in cut
    assert removed == f"{path}: removed the segment at offset 8, since the log ends at 4"
    assert content(opened(path))[:3] == (0, 4, 2)


def test_what_is_no_segment_is_left_alone(path: Path) -> None:
    log = filled(path, 1)
    (path / "notes.log").write_text("mine")
    assert content(opened(path)) == content(log)
    assert (path / "notes.log").exists()


def test_an_append_that_fails_has_no_effect_and_the_next_one_succeeds(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The batch is the first or the second one of a segment, and any part of it was written."""
    log = filled(path, 1)
    for room in (0, 1, BATCH_BYTES - 1):
        for _ in range(2):
            before = list(log.batches())
            caplog.clear()
            with full_disk(room):
                for _ in range(2):
                    with pytest.raises(ApiError, match="No space left on device") as refused:
                        log.append_as_leader(batch())
                    assert refused.value.code is ErrorCode.kafka_storage_error
            assert list(log.batches()) == batches_after_a_restart(path) == before
            assert len(caplog.messages) == 1, "the second failure is the same"
            assert log.append_as_leader(batch()) == len(before) * 2
    assert content(opened(path)) == content(log)


def batches_after_a_restart(path: Path) -> list[RecordBatch]:
    """What a restart would find. The files stay as they are."""
    saved = {file: file.read_bytes() for file in path.iterdir()}
    found = list(opened(path).batches())
    for file, data in saved.items():
        file.write_bytes(data)
    return found


def test_a_segment_that_somebody_has_removed_is_not_begun_in_the_middle(path: Path) -> None:
    log = filled(path, 1)
    segment(path, 0).unlink()
    with pytest.raises(ApiError, match="KAFKA_STORAGE_ERROR"):
        log.append_as_leader(batch())
    assert segments(path) == []


@pytest.mark.parametrize("offset", [0, 2, 3, 4, 7, 9])
def test_a_truncation_reaches_the_files(path: Path, offset: int) -> None:
    log = filled(path, 5)
    log.truncate_to(offset)
    assert content(opened(path)) == content(log)
    log.append_as_leader(batch())
    assert content(opened(path)) == content(log)


@pytest.mark.parametrize("offset", [1, 4, 6, 10])
def test_deleted_records_stay_deleted(path: Path, offset: int) -> None:
    log = filled(path, 5)
    log.increment_log_start_offset(offset)
    assert content(opened(path)) == content(log)
    assert len(segments(path)) == log.segment_count
    log.append_as_leader(batch())
    assert content(opened(path)) == content(log)


@pytest.mark.parametrize("offset", [3, 50])
def test_a_log_that_begins_anew_is_empty_at_its_offset(path: Path, offset: int) -> None:
    log = filled(path, 3)
    log.truncate_fully_and_start_at(offset)
    assert content(opened(path)) == content(log) == (offset, offset, 1, [])
    log.append_as_leader(batch())
    assert content(opened(path)) == content(log)


def test_a_log_that_begins_inside_a_batch_is_read_back(path: Path) -> None:
    log = opened(path)
    log.truncate_fully_and_start_at(11)
    log.append_as_follower(batch().at(10, 0))
    assert content(opened(path)) == content(log)
    assert log.log_start_offset == 11


# More than any change makes.
CALLS = 12


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log.append_as_leader(batch()),
        lambda log: log.truncate_to(3),
        lambda log: log.truncate_to(1),
        lambda log: log.increment_log_start_offset(7),
        lambda log: log.increment_log_start_offset(10),
        lambda log: log.truncate_fully_and_start_at(30),
    ],
    ids=["append", "truncate", "truncate below the start", "delete", "delete all", "begin anew"],
)
def test_a_kill_between_two_calls_of_the_system_leaves_what_was_there_or_what_comes(
    tmp_path: Path, change: Callable[[PartitionLog], object]
) -> None:
    before = killed_after(tmp_path / "before", change, calls=0)
    after = killed_after(tmp_path / "after", change, calls=CALLS)
    old, new = {*before.batches()}, {*after.batches()}
    for calls in range(CALLS):
        log = killed_after(tmp_path / str(calls), change, calls)
        assert old & new <= {*log.batches()} <= old | new
        assert log.log_start_offset in (before.log_start_offset, after.log_start_offset)
        assert log.append_as_leader(batch()) == log.log_end_offset - 2


def killed_after(path: Path, change: Callable[[PartitionLog], object], calls: int) -> PartitionLog:
    """Kill a change of a log from 2 to 10 before a call that changes files, and read the log again."""
    log = filled(path, 5)
    log.increment_log_start_offset(2)
    left = calls

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def counting(*arguments: object, **options: object) -> object:
            nonlocal left
            if not left:
                raise Killed
            left -= 1
            return call(*arguments, **options)

        return counting

    names = ("open", "pwrite", "ftruncate", "truncate", "unlink", "replace")
    patches = [patch.object(os, name, counted(getattr(os, name))) for name in names]
    for each in patches:
        each.start()
    try:
        with suppress(Killed):
            change(log)
    finally:
        for each in patches:
            each.stop()
    return opened(path)


def test_a_start_above_the_end_means_that_the_log_was_about_to_begin_anew(path: Path) -> None:
    filled(path, 3)
    PartitionDirectory(path, TOPIC_ID).save(LOG_START_OFFSET, 50)
    assert content(opened(path)) == (50, 50, 1, [])
    assert segments(path) == []


def test_segments_below_the_start_were_about_to_be_removed(path: Path) -> None:
    filled(path, 5)
    PartitionDirectory(path, TOPIC_ID).save(LOG_START_OFFSET, 5)
    assert content(opened(path))[:3] == (5, 10, 2)
    assert segments(path) == [segment(path, offset).name for offset in (4, 8)]
