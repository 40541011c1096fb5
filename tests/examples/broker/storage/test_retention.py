"""Retention: whole segments that are too old or too much are deleted."""

import pytest

from examples.broker.storage.log import PartitionLog
from examples.broker.storage.record_batch import NO_TIMESTAMP, RecordBatch

# Two batches of 10 records and 40 bytes are a segment.
BATCH, SEGMENT = 40, 80
NOW = 1_700_000_000_000


def log_of(*ages: int) -> PartitionLog:
    """A log with one batch for each age in milliseconds."""
    log = PartitionLog(SEGMENT)
    for age in ages:
        log.append_as_leader(RecordBatch(10, b"x" * BATCH, max_timestamp=NOW - age))
    return log


def retain(log: PartitionLog, *, ms: int = -1, size: int = -1, up_to: int = 1 << 40) -> tuple[bool, int]:
    """Return whether something was deleted, and where the log starts then."""
    before = log.log_start_offset
    start = log.retained_from(up_to, NOW, retention_ms=ms, retention_bytes=size)
    if start > before:
        log.delete_segments_below(start)
    return start > before, log.log_start_offset


@pytest.mark.parametrize(
    ("ages", "ms", "start"),
    [
        ((10**12, 10**12, 0), -1, 0),
        ((900, 500, 499, 400, 0), 500, 0),
        ((900, 500, 499, 400, 0), 499, 20),
        ((0, 900, 900, 900, 0), 500, 0),
    ],
    ids=["no limit", "young enough", "too old", "behind a young one"],
)
def test_a_segment_is_deleted_when_its_last_timestamp_is_too_old(
    ages: tuple[int, ...], ms: int, start: int
) -> None:
    log = log_of(*ages)
    assert retain(log, ms=ms) == (start > 0, start)
    assert retain(log, ms=ms) == (False, start)


def test_records_without_a_timestamp_are_never_too_old() -> None:
    log = PartitionLog(SEGMENT)
    for _ in range(3):
        log.append_as_leader(RecordBatch(10, b"x" * BATCH, max_timestamp=NO_TIMESTAMP))
    assert retain(log, ms=0) == (False, 0)


@pytest.mark.parametrize(("size", "start"), [(200, 0), (121, 0), (120, 20), (40, 40), (1, 40), (0, 50)])
def test_the_oldest_segments_are_deleted_while_the_rest_is_large_enough(size: int, start: int) -> None:
    assert retain(log_of(0, 0, 0, 0, 0), size=size) == (start > 0, start)


@pytest.mark.parametrize(("up_to", "start"), [(50, 50), (49, 40), (40, 40), (39, 20), (19, 0)])
def test_what_is_not_committed_is_kept(up_to: int, start: int) -> None:
    assert retain(log_of(900, 900, 900, 900, 900), ms=500, up_to=up_to) == (start > 0, start)


def test_a_log_without_records_goes_on_in_a_new_segment() -> None:
    log = log_of(900)
    assert retain(log, ms=500) == (True, 10)
    assert (log.segment_count, log.size_in_bytes, log.log_end_offset) == (1, 0, 10)
    assert retain(log, ms=500) == (False, 10)
    assert log.append_as_leader(RecordBatch(10, b"x" * BATCH)) == 10
