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
    assert (log.segment_count, log.size_in_bytes) == (3, 200)
    log.append_as_leader(batch(size=SEGMENT_BYTES * 2))
    log.append_as_leader(batch())
    assert log.segment_count == 5, "a batch that is larger than a segment has its own"
    assert offsets(log, 50, max_bytes=1) == [50]


@pytest.mark.parametrize(
    ("offset", "max_bytes", "min_one_batch", "found"),
    [
        (0, 10_000, True, [0, 10]),
        (20, 10_000, True, [20, 30]),
        (15, 10_000, True, [10]),
        (0, 80, True, [0, 10]),
        (0, 79, True, [0]),
        (0, 1, True, [0]),
        (0, 1, False, []),
        (50, 10_000, True, []),
    ],
)
def test_a_read_gives_whole_batches_up_to_its_limit_from_one_segment(
    log: PartitionLog, offset: int, max_bytes: int, min_one_batch: bool, found: list[int]
) -> None:
    assert offsets(log, offset, max_bytes, min_one_batch=min_one_batch) == found


@pytest.mark.parametrize("offset", [-1, 9, 51])
def test_a_read_outside_the_log_is_out_of_range(log: PartitionLog, offset: int) -> None:
    log.increment_log_start_offset(10)
    with pytest.raises(ApiError, match="OFFSET_OUT_OF_RANGE") as refused:
        log.read(offset, 10_000, log.log_end_offset)
    assert refused.value.code is ErrorCode.offset_out_of_range


@pytest.mark.parametrize(
    ("start", "offset", "left"),
    [
        (0, 30, (0, 30, 2)),
        (0, 35, (0, 30, 2)),
        (0, 20, (0, 20, 2)),
        (0, 50, (0, 50, 3)),
        (0, 60, (0, 50, 3)),
        (20, 15, (15, 15, 1)),
        (15, 10, (10, 10, 1)),
    ],
    ids=["a batch", "inside a batch", "a segment", "nothing", "past the end", "below all", "below the start"],
)
def test_truncating_drops_what_is_at_and_past_the_offset(
    log: PartitionLog, start: int, offset: int, left: tuple[int, int, int]
) -> None:
    log.increment_log_start_offset(start)
    log.truncate_to(offset)
    assert (log.log_start_offset, log.log_end_offset, log.segment_count) == left
    assert log.append_as_leader(batch()) == left[1]
    assert offsets(log, left[1]) == [left[1]]


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
