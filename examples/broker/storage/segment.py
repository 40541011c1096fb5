"""Log segments, which store the record batches, and offsets with their position in a segment."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.timestamps import NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class LogOffsetMetadata:
    """An offset, the base offset of its segment, and its byte position in that segment.

    With the positions a delayed fetch counts the bytes between two offsets without a read
    (org.apache.kafka.storage.internals.log.LogOffsetMetadata).
    """

    message_offset: int
    segment_base_offset: int
    relative_position_in_segment: int

    def on_older_segment(self, that: "LogOffsetMetadata") -> bool:
        return self.segment_base_offset < that.segment_base_offset

    def on_same_segment(self, that: "LogOffsetMetadata") -> bool:
        return self.segment_base_offset == that.segment_base_offset

    def position_diff(self, that: "LogOffsetMetadata") -> int:
        """Return the bytes from ``that`` to this offset. Raises ValueError when their segments differ."""
        if not self.on_same_segment(that):
            raise ValueError(f"{self} and {that} lie on different segments, so the bytes between are unknown")
        return self.relative_position_in_segment - that.relative_position_in_segment


UNKNOWN_OFFSET_METADATA = LogOffsetMetadata(-1, -1, -1)


@dataclass(frozen=True, slots=True)
class FetchDataInfo:
    """The result of a read: the position where it began, and whole batches from there on."""

    fetch_offset_metadata: LogOffsetMetadata
    batches: tuple[RecordBatch, ...] = ()
    size_in_bytes: int = 0


class LogSegment:
    """Consecutive batches from ``base_offset`` on. To find an offset costs O(log batches)."""

    __slots__ = ("_base_offsets", "_batches", "_positions", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._batches: list[RecordBatch] = []
        self._base_offsets: list[int] = []
        # The start position of each batch, and last the position of the next batch.
        self._positions: list[int] = [0]

    def __repr__(self) -> str:
        return f"<LogSegment {self.base_offset}..{self.next_offset} {self.size_in_bytes} bytes>"

    @property
    def size_in_bytes(self) -> int:
        return self._positions[-1]

    @property
    def batches(self) -> Sequence[RecordBatch]:
        return self._batches

    @property
    def next_offset(self) -> int:
        return self._batches[-1].next_offset if self._batches else self.base_offset

    @property
    def max_timestamp(self) -> int:
        """The latest timestamp of a record, in O(batches); NO_TIMESTAMP if none has one."""
        return max((batch.max_timestamp for batch in self._batches), default=NO_TIMESTAMP)

    @property
    def end(self) -> LogOffsetMetadata:
        return LogOffsetMetadata(self.next_offset, self.base_offset, self._positions[-1])

    def append(self, batch: RecordBatch) -> None:
        self._batches.append(batch)
        self._base_offsets.append(batch.base_offset)
        self._positions.append(self._positions[-1] + batch.size_in_bytes)

    def locate(self, offset: int) -> LogOffsetMetadata:
        """Return ``offset`` with the position of the batch that contains it."""
        return LogOffsetMetadata(offset, self.base_offset, self._positions[self._index_of(offset)])

    def read(self, offset: int, max_bytes: int, max_position: int, *, min_one_batch: bool) -> FetchDataInfo:
        """Return whole batches from the one that contains ``offset`` on; see ``PartitionLog.read``."""
        first = self._index_of(offset)
        start = self._positions[first]
        stop = bisect_right(self._positions, min(start + max_bytes, max_position)) - 1
        if min_one_batch:
            stop = max(stop, first + 1)
        metadata = LogOffsetMetadata(offset, self.base_offset, start)
        if stop <= first:
            return FetchDataInfo(metadata)
        return FetchDataInfo(metadata, tuple(self._batches[first:stop]), self._positions[stop] - start)

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that contains ``offset``, and all batches after it."""
        index = self._index_of(offset)
        del self._batches[index:], self._base_offsets[index:], self._positions[index + 1 :]

    def _index_of(self, offset: int) -> int:
        return bisect_right(self._base_offsets, offset) - 1
