"""Logs in files, and the batches for them."""

from pathlib import Path
from uuid import UUID

from examples.broker.storage.log import PartitionLog
from examples.broker.storage.partition_directory import PartitionDirectory
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.wire_batch import WireRecordBatch
from tests.examples.broker.wire_batches import NO_PRODUCER, wire_batch

TOPIC_ID = UUID(int=1)
BATCH_BYTES = len(wire_batch(b"a", b"b"))
# A segment has two batches.
SEGMENT_BYTES = 2 * BATCH_BYTES


def batch(producer: tuple[int, int, int] = NO_PRODUCER) -> WireRecordBatch:
    """A batch of two records and ``BATCH_BYTES`` bytes."""
    return WireRecordBatch.parse(wire_batch(b"a", b"b", producer=producer))


def opened(path: Path, segment_bytes: int = SEGMENT_BYTES) -> PartitionLog:
    """The log in a directory, as it is read after a kill."""
    return PartitionLog(segment_bytes, PartitionDirectory(path, TOPIC_ID))


def filled(path: Path, batches: int) -> PartitionLog:
    log = opened(path)
    for _ in range(batches):
        log.append_as_leader(batch())
    return log


def content(log: PartitionLog) -> tuple[int, int, int, list[RecordBatch]]:
    return log.log_start_offset, log.log_end_offset, log.segment_count, list(log.batches())


def segments(path: Path) -> list[str]:
    return sorted(file.name for file in path.glob("*.log"))
