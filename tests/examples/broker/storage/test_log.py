"""The log of one replica: offsets, segments, reads, truncation."""

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.record_batch import RecordBatch

SEGMENT_BYTES = 100


def batch(records: int = 10, size: int = 40) -> RecordBatch:
    return RecordBatch(records, b"x" * size)


@pytest.fixture
def log() -> PartitionLog:
    """A log with five batches of 10 records and 40 bytes; segments of two batches begin at 0, 20 and 40."""
    log = PartitionLog(SEGMENT_BYTES)
    for _ in range(5):
        log.append_as_leader(batch())
    return log


def offsets(log: PartitionLog, offset: int, max_bytes: int = 10_000, **options: bool) -> list[int]:
    return [batch.base_offset for batch in log.read(offset, max_bytes, log.log_end_offset, **options)]


def test_an_empty_log_starts_and_ends_at_offset_0() -> None:
    log = PartitionLog(SEGMENT_BYTES)
    assert (log.log_start_offset, log.log_end_offset, log.segment_count) == (0, 0, 1)


def test_a_leader_assigns_the_next_offsets_and_keeps_the_bytes() -> None:
    log = PartitionLog(SEGMENT_BYTES)
    assert log.append_as_leader(batch(records=3)) == 0
    assert log.append_as_leader(RecordBatch(5, b"opaque"), leader_epoch=2) == 3
    assert list(log.batches())[1] == RecordBatch(5, b"opaque", base_offset=3, leader_epoch=2)
    assert log.log_end_offset == 8


def test_a_follower_keeps_the_leaders_offsets_and_refuses_a_gap_or_an_overlap() -> None:
    log = PartitionLog(SEGMENT_BYTES)
    log.append_as_follower(batch().at(0, 0))
    for offset in (9, 11):
        with pytest.raises(ValueError, match=f"offset {offset} does not continue"):
            log.append_as_follower(batch().at(offset, 0))
    log.append_as_follower(batch().at(10, 0))
    assert log.log_end_offset == 20


@pytest.mark.parametrize(("records", "data"), [(0, b"x"), (-1, b"x"), (1, b"")])
def test_a_batch_without_records_or_bytes_is_refused(records: int, data: bytes) -> None:
    with pytest.raises(ValueError, match="at least one record and one byte"):
        RecordBatch(records, data)


def test_a_segment_needs_a_positive_size() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        PartitionLog(0)


def test_a_segment_rolls_when_the_next_batch_would_not_fit(log: PartitionLog) -> None:
    assert log.segment_count == 3
    assert log.size_in_bytes == 200


def test_a_batch_larger_than_a_segment_has_its_own(log: PartitionLog) -> None:
    log.append_as_leader(batch(size=SEGMENT_BYTES * 2))
    log.append_as_leader(batch())
    assert log.segment_count == 5
    assert offsets(log, 50, max_bytes=1) == [50]


def test_a_read_gives_whole_batches_up_to_its_limit_from_one_segment(log: PartitionLog) -> None:
    assert offsets(log, 0) == [0, 10]
    assert offsets(log, 20) == [20, 30]
    assert offsets(log, 0, max_bytes=79) == [0]
    assert offsets(log, 0, max_bytes=80) == [0, 10]


def test_a_read_begins_with_the_batch_that_holds_its_offset(log: PartitionLog) -> None:
    assert offsets(log, 15) == [10]


def test_min_one_batch_returns_the_first_batch_of_any_size(log: PartitionLog) -> None:
    assert offsets(log, 0, max_bytes=1) == [0]
    assert offsets(log, 0, max_bytes=1, min_one_batch=False) == []


@pytest.mark.parametrize("bound", [10, 20, 40])
def test_a_read_stops_at_its_upper_bound(log: PartitionLog, bound: int) -> None:
    found = [batch.base_offset for offset in range(0, 50, 10) for batch in log.read(offset, 40, bound)]
    assert found == list(range(0, bound, 10))


@pytest.mark.parametrize("offset", [-1, 9, 51])
def test_a_read_outside_the_log_is_out_of_range(log: PartitionLog, offset: int) -> None:
    log.increment_log_start_offset(10)
    with pytest.raises(ApiError, match="OFFSET_OUT_OF_RANGE") as refused:
        log.read(offset, 10_000, log.log_end_offset)
    assert refused.value.code is ErrorCode.offset_out_of_range


def test_truncating_drops_what_is_at_and_past_the_offset(log: PartitionLog) -> None:
    log.truncate_to(30)
    assert (log.log_end_offset, log.segment_count) == (30, 2)
    assert log.append_as_leader(batch()) == 30


def test_truncating_at_a_segments_start_leaves_it_empty_and_active(log: PartitionLog) -> None:
    log.truncate_to(20)
    log.append_as_leader(batch())
    assert offsets(log, 20) == [20]


def test_truncating_inside_a_batch_drops_it_whole(log: PartitionLog) -> None:
    log.truncate_to(35)
    assert log.log_end_offset == 30


def test_truncating_at_or_past_the_end_changes_nothing(log: PartitionLog) -> None:
    for offset in (50, 60):
        log.truncate_to(offset)
        assert (log.log_end_offset, log.segment_count) == (50, 3)


def test_truncating_below_the_start_leaves_an_empty_log_there(log: PartitionLog) -> None:
    log.increment_log_start_offset(20)
    log.truncate_to(15)
    assert (log.log_start_offset, log.log_end_offset) == (15, 15)
    assert log.append_as_leader(batch()) == 15


def test_truncating_below_the_log_start_offset_moves_it_back(log: PartitionLog) -> None:
    log.increment_log_start_offset(15)
    log.truncate_to(10)
    assert (log.log_start_offset, log.log_end_offset) == (10, 10)


def test_moving_the_start_frees_whole_segments_and_keeps_the_active_one(log: PartitionLog) -> None:
    log.increment_log_start_offset(19)
    assert (log.log_start_offset, log.segment_count) == (19, 3)
    log.increment_log_start_offset(20)
    assert (log.log_start_offset, log.segment_count) == (20, 2)
    log.increment_log_start_offset(50)
    assert (log.log_start_offset, log.segment_count) == (50, 1)


def test_the_start_moves_forward_only_and_not_past_the_end(log: PartitionLog) -> None:
    log.increment_log_start_offset(20)
    log.increment_log_start_offset(10)
    assert log.log_start_offset == 20
    with pytest.raises(ApiError, match="OFFSET_OUT_OF_RANGE"):
        log.increment_log_start_offset(51)


@pytest.mark.parametrize(("start", "end", "size"), [(0, 0, 0), (0, 50, 200), (15, 40, 120), (50, 30, -80)])
def test_the_bytes_between_two_offsets_are_counted_across_segments(
    log: PartitionLog, start: int, end: int, size: int
) -> None:
    assert log.bytes_between(start, end) == size
