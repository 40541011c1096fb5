"""The segments of a log, as they are read back from its files."""

import logging

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.partition_directory import LOG_START_OFFSET, PartitionDirectory
from examples.broker.storage.segment import LogSegment
from examples.broker.storage.wire_batch import WireRecordBatch

logger = logging.getLogger(__name__)


def recover(directory: PartitionDirectory) -> list[LogSegment]:
    """Return the segments up to the first batch that is not whole, and at least one (Kafka's LogLoader).

    A kill may leave a part of the last batch, and segments that were about to be removed. Both are removed
    here. Nobody has acknowledged the batch. What comes after damage in the middle is removed, too, since a
    log has no gaps: other replicas have it. Raises ApiError KAFKA_STORAGE_ERROR.
    """
    start = directory.load(LOG_START_OFFSET)
    base_offsets = directory.base_offsets()
    while len(base_offsets) > 1 and base_offsets[1] <= start:
        directory.remove(base_offsets.pop(0))
    segments: list[LogSegment] = []
    for base_offset in base_offsets:
        if segments and base_offset != segments[-1].next_offset:
            logger.warning(
                "%s: removed the segment at offset %d, since the log ends at %d",
                directory,
                base_offset,
                segments[-1].next_offset,
            )
            directory.remove(base_offset)
        else:
            segments.append(_read(directory, base_offset))
    if segments and segments[-1].next_offset >= start:
        return segments
    # The log was about to begin anew at this offset, or has no file yet.
    for segment in reversed(segments):
        segment.remove_file()
    return [LogSegment(start, directory)]


def _read(directory: PartitionDirectory, base_offset: int) -> LogSegment:
    segment = LogSegment(base_offset, directory)
    data = directory.read(base_offset)
    try:
        for batch in WireRecordBatch.parse_each(data):
            # The checksum does not cover the offset.
            if batch.base_offset != segment.next_offset:
                raise ApiError(
                    ErrorCode.corrupt_message,
                    f"a batch at offset {batch.base_offset}, where {segment.next_offset} comes next",
                )
            segment.load(batch)
    except ApiError as fault:
        logger.warning(
            "%s: cut off %d bytes after offset %d: %s",
            directory,
            len(data) - segment.size_in_bytes,
            segment.next_offset,
            fault,
        )
        directory.truncate(base_offset, segment.size_in_bytes)
    return segment
