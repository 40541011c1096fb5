"""A partition's log: segments in order, appended to at the end, read anywhere, dropped from the front."""

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.leader_epochs import EpochEndOffset, LeaderEpochs
from examples.broker.storage.producer_state import ProducerState
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.segment import FetchDataInfo, LogOffsetMetadata, LogSegment
from examples.broker.storage.timestamps import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
    TimestampAndOffset,
)

_BASE_OFFSET = attrgetter("base_offset")


class PartitionLog:
    """One replica's copy of a partition (Kafka's UnifiedLog, in memory).

    Appending is O(1), reading O(log segments + log batches of one segment + batches returned). A segment
    rolls when the next batch would take it past ``segment_bytes``; a batch larger than that gets a segment of
    its own.
    """

    def __init__(self, segment_bytes: int) -> None:
        if segment_bytes < 1:
            raise ValueError(f"segment_bytes must be at least 1, not {segment_bytes}")
        self._segment_bytes = segment_bytes
        self._segments = [LogSegment(0)]
        self._end = self._segments[-1].end
        self._epochs = LeaderEpochs()
        self._producers = ProducerState()
        self.log_start_offset = 0

    def __repr__(self) -> str:
        return (
            f"<PartitionLog {self.log_start_offset}..{self.log_end_offset} in {len(self._segments)} segments>"
        )

    @property
    def log_end_offset(self) -> int:
        """The offset the next record will get."""
        return self._end.message_offset

    @property
    def log_end_offset_metadata(self) -> LogOffsetMetadata:
        return self._end

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size_in_bytes for segment in self._segments)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def latest_epoch(self) -> int:
        """Of the leader that appended last, or was to; -1 before any."""
        return self._epochs.latest

    def batches(self) -> Iterator[RecordBatch]:
        """All that are stored, the one that holds ``log_start_offset`` first."""
        return (
            batch
            for segment in self._segments
            for batch in segment.batches
            if batch.next_offset > self.log_start_offset
        )

    def begin_epoch(self, leader_epoch: int) -> None:
        """What is appended from here on is a new leader's."""
        self._epochs.assign(leader_epoch, self.log_end_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """The largest epoch here not past ``leader_epoch``, and where it ends; see ``LeaderEpochs``."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def append_as_leader(self, batch: RecordBatch, leader_epoch: int = 0) -> int:
        """Store the batch under the next offsets; gives back its first.

        A retry of what an idempotent producer has got in already is not stored again, and gives the offset
        it has. ApiError when its sequence is not next; see ``ProducerState.check``.
        """
        if batch.producer is not None:
            earlier = self._producers.check(batch.producer, self.log_start_offset)
            if earlier is not None:
                return earlier
        stored = batch.at(self.log_end_offset, leader_epoch)
        self._append(stored)
        return stored.base_offset

    def append_as_follower(self, batch: RecordBatch) -> None:
        """Store a batch under the offsets the leader gave it; ValueError for a gap or an overlap.

        Only the first batch of an empty log may begin below it, when the leader's log starts inside that.
        """
        end = self.log_end_offset
        if self.log_start_offset == end and batch.base_offset < end < batch.next_offset:
            self.truncate_fully_and_start_at(batch.base_offset)
            self._append(batch)
            self.log_start_offset = end
            return
        if batch.base_offset != end:
            raise ValueError(f"a batch at offset {batch.base_offset} does not continue {self!r}")
        self._append(batch)

    def read(
        self, offset: int, max_bytes: int, upper_bound: LogOffsetMetadata, *, min_one_batch: bool = True
    ) -> FetchDataInfo:
        """Whole batches from the one that holds ``offset``, below ``upper_bound``, from one segment.

        At most ``max_bytes``, except that with ``min_one_batch`` the first comes whatever its size, so that a
        reader never gets stuck on a large one (KIP-74). Reading at or past the bound gives nothing. ApiError
        OFFSET_OUT_OF_RANGE outside ``log_start_offset..log_end_offset``.
        """
        if offset >= upper_bound.message_offset:
            return FetchDataInfo(self.locate(offset))
        segment = self._segment_of(offset)
        if upper_bound.segment_base_offset == segment.base_offset:
            max_position = upper_bound.relative_position_in_segment
        else:
            max_position = segment.size_in_bytes
        return segment.read(offset, max_bytes, max_position, min_one_batch=min_one_batch)

    def locate(self, offset: int) -> LogOffsetMetadata:
        """Where ``offset`` lies. ApiError OFFSET_OUT_OF_RANGE as for ``read``."""
        return self._end if offset == self.log_end_offset else self._segment_of(offset).locate(offset)

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record that is at least as late as ``timestamp``, in O(batches).

        Exact where a batch can be looked into and lies here whole; a compressed one stands for all its
        records. Special timestamps ask for the start of the log and for the latest record (KIP-734).
        """
        if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            return self._stamped(NO_TIMESTAMP, self.log_start_offset)
        if timestamp == MAX_TIMESTAMP:
            timestamp = max((batch.max_timestamp for batch in self.batches()), default=NO_TIMESTAMP)
        if timestamp < 0:
            return None
        for batch in self.batches():
            if batch.max_timestamp >= timestamp:
                for offset, found in batch.timestamps():
                    if found >= timestamp:
                        return self._stamped(found, max(offset, self.log_start_offset))
        return None

    def truncate_to(self, offset: int) -> None:
        """Drop every batch with a record at or past ``offset``. A batch that straddles it goes whole.

        As in Kafka's LocalLog.truncateTo, a segment that begins at ``offset`` stays, empty, as the active
        one, and an offset below the start of the log leaves an empty log there.
        """
        if offset >= self.log_end_offset:
            # A leader may have begun here that appended nothing before another one took over.
            self._epochs.truncate_from_end(self.log_end_offset)
            return
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        del self._segments[self._segment_index(offset) + 1 :]
        self._segments[-1].truncate_to(offset)
        self._end = self._segments[-1].end
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self._epochs.truncate_from_end(self.log_end_offset)
        self._producers.rebuild(self.batches())

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets ``offset``."""
        self._segments = [LogSegment(offset)]
        self._end = self._segments[-1].end
        self.log_start_offset = offset
        self._epochs.clear()
        self._producers.rebuild(())

    def increment_log_start_offset(self, offset: int) -> None:
        """Give up what is below ``offset`` (no effect if it is given up already): whole segments are freed.

        The active segment stays, whatever it holds. ApiError OFFSET_OUT_OF_RANGE past the end of the log.
        """
        if offset > self.log_end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{offset} is past the end of {self!r}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            del self._segments[: self._segment_index(offset)]
            self._epochs.truncate_from_start(offset)
            self._producers.forget_below(offset)

    def _append(self, batch: RecordBatch) -> None:
        active = self._segments[-1]
        if active.size_in_bytes and active.size_in_bytes + batch.size_in_bytes > self._segment_bytes:
            active = LogSegment(batch.base_offset)
            self._segments.append(active)
        active.append(batch)
        self._end = active.end
        if batch.leader_epoch > self._epochs.latest:
            self._epochs.assign(batch.leader_epoch, batch.base_offset)
        if batch.producer is not None:
            self._producers.update(batch)

    def _stamped(self, timestamp: int, offset: int) -> TimestampAndOffset:
        return TimestampAndOffset(timestamp, offset, self._epochs.epoch_at(offset))

    def _segment_of(self, offset: int) -> LogSegment:
        if not self.log_start_offset <= offset < self.log_end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{offset} is outside {self!r}")
        return self._segments[self._segment_index(offset)]

    def _segment_index(self, offset: int) -> int:
        return bisect_right(self._segments, offset, key=_BASE_OFFSET) - 1
