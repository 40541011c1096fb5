"""A partition's log: segments that are appended to at the end, read anywhere and deleted from the start."""

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.storage.leader_epochs import EpochEndOffset, LeaderEpochs
from examples.broker.storage.producer_state import KnownProducer, ProducerState
from examples.broker.storage.record_batch import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
    RecordBatch,
    TimestampAndOffset,
)
from examples.broker.storage.segment import LogSegment

_BASE_OFFSET = attrgetter("base_offset")


class PartitionLog:
    """The log of one replica (Kafka's UnifiedLog, but read from memory).

    An append costs O(1), a read O(log segments + log batches of one segment + batches returned). The log
    rolls to a new segment when the next batch would make the active one larger than ``segment_bytes``. A
    batch that is larger than that has a segment of its own.
    """

    def __init__(self, segment_bytes: int) -> None:
        if segment_bytes < 1:
            raise ValueError(f"segment_bytes must be at least 1, not {segment_bytes}")
        self.segment_bytes = segment_bytes
        self.log_start_offset = 0
        # The offset of the next record.
        self.log_end_offset = 0
        self._segments = [LogSegment(0)]
        self._epochs = LeaderEpochs()
        self._producers = ProducerState()

    def __repr__(self) -> str:
        return (
            f"<PartitionLog {self.log_start_offset}..{self.log_end_offset} in {len(self._segments)} segments>"
        )

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size_in_bytes for segment in self._segments)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def latest_epoch(self) -> int:
        """The epoch of the latest leader, even if it has appended nothing; -1 before the first one."""
        return self._epochs.latest

    def batches(self) -> Iterator[RecordBatch]:
        """Return all batches, from the one with ``log_start_offset`` on."""
        return (
            batch
            for segment in self._segments
            for batch in segment.batches
            if batch.next_offset > self.log_start_offset
        )

    def producers(self) -> list[KnownProducer]:
        """Return the idempotent producers with a record in the log."""
        return self._producers.known()

    def begin_epoch(self, leader_epoch: int) -> None:
        """Begin a leader epoch at the end of the log."""
        self._epochs.assign(leader_epoch, self.log_end_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """Return the largest known epoch up to ``leader_epoch``, and its end; see ``LeaderEpochs``."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def append_as_leader(self, batch: RecordBatch, leader_epoch: int = 0) -> int:
        """Append the batch at the next offsets, and return its first offset.

        A retry of a batch that an idempotent producer has already appended is not appended again, and returns
        the earlier offset. Raises ApiError when the sequence is not the next one; see
        ``ProducerState.check``.
        """
        if batch.producer is not None:
            earlier = self._producers.check(batch.producer, self.log_start_offset)
            if earlier is not None:
                return earlier
        stored = batch.at(self.log_end_offset, leader_epoch)
        self._append(stored)
        return stored.base_offset

    def append_as_follower(self, batch: RecordBatch) -> None:
        """Append a batch at the offsets that the leader gave it. Raises ValueError for a gap or an overlap.

        Only the first batch of an empty log may begin below the log, when the leader's log starts inside the
        batch.
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
        self, offset: int, max_bytes: int, upper_bound: int, *, min_one_batch: bool = True
    ) -> tuple[RecordBatch, ...]:
        """Return whole batches of one segment, from the one with ``offset`` on, below ``upper_bound``.

        They have at most ``max_bytes``. With ``min_one_batch`` the first batch is returned whatever its size,
        so that a large batch never blocks a reader (KIP-74). At or above the bound there are no batches.
        Raises ApiError OFFSET_OUT_OF_RANGE outside ``log_start_offset..log_end_offset``.
        """
        if offset == self.log_end_offset:
            return ()
        segment = self._segment_of(offset)
        if offset >= upper_bound:
            return ()
        return segment.read(offset, max_bytes, upper_bound, min_one_batch=min_one_batch)

    def bytes_between(self, start: int, end: int) -> int:
        """Return the size of the batches from ``start`` on below ``end``; negative if ``start`` is higher.

        It reads nothing, and costs O(log segments). Raises ApiError OFFSET_OUT_OF_RANGE as ``read`` does.
        """
        return self._position_of(end) - self._position_of(start)

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """Return the first record with this ``timestamp`` or a later one, in O(batches).

        The batch that has it is read, and decompressed if need be. In an unreadable batch the first record
        stands for all. Special timestamps ask for the start of the log and for the record with the highest
        timestamp (KIP-734).
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
                    if found >= timestamp and offset >= self.log_start_offset:
                        return self._stamped(found, offset)
        return None

    def truncate_to(self, offset: int) -> None:
        """Drop every batch with a record at or above ``offset``, including the batch that contains it.

        As in Kafka's LocalLog.truncateTo, a segment that begins at ``offset`` stays as the empty active
        segment, and an offset below the start of the log leaves an empty log at that offset.
        """
        if offset >= self.log_end_offset:
            # An epoch may begin at the end of the log: its leader appended nothing before the next one led.
            self._epochs.truncate_from_end(self.log_end_offset)
            return
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        del self._segments[self._segment_index(offset) + 1 :]
        self._segments[-1].truncate_to(offset)
        self.log_end_offset = self._segments[-1].next_offset
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self._epochs.truncate_from_end(self.log_end_offset)
        self._producers.rebuild(self.batches())

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all batches. The next record has ``offset``."""
        self.log_start_offset = self.log_end_offset = offset
        self._segments = [LogSegment(offset)]
        self._epochs.clear()
        self._producers.rebuild(())

    def increment_log_start_offset(self, offset: int) -> None:
        """Move the log start offset up to ``offset``, and free the segments below it.

        It has no effect when the log already starts there or later. The active segment stays. Raises ApiError
        OFFSET_OUT_OF_RANGE above the end of the log.
        """
        if offset > self.log_end_offset:
            raise ApiError(ErrorCode.offset_out_of_range, f"offset {offset} is above the end of {self!r}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            del self._segments[: self._segment_index(offset)]
            self._epochs.truncate_from_start(offset)
            self._producers.drop_below(offset)

    def retained_from(
        self, up_to: int, now: int, *, retention_ms: int = -1, retention_bytes: int = -1
    ) -> int:
        """Return where the log would start without the segments below ``up_to`` that are too old or too much.

        A segment is too old when its last timestamp is more than ``retention_ms`` before ``now``. The oldest
        segments are too much while the rest has ``retention_bytes`` or more. A retention of -1 is unlimited.
        """
        excess = self.size_in_bytes - retention_bytes if retention_bytes >= 0 else -1
        start = self.log_start_offset
        for segment in self._segments:
            size = segment.size_in_bytes
            deletable = size and segment.next_offset <= up_to
            if not deletable or not (excess >= size or _is_too_old(segment, now, retention_ms)):
                break
            excess -= size
            start = segment.next_offset
        return start

    def delete_segments_below(self, start: int) -> None:
        """Delete the segments below ``start``, where one begins. When nothing is left, a new one begins."""
        if start == self.log_end_offset:
            self._roll()
        self.increment_log_start_offset(start)

    def _append(self, batch: RecordBatch) -> None:
        active = self._segments[-1]
        if active.size_in_bytes and active.size_in_bytes + batch.size_in_bytes > self.segment_bytes:
            active = self._roll()
        active.append(batch)
        self.log_end_offset = batch.next_offset
        if batch.leader_epoch > self._epochs.latest:
            self._epochs.assign(batch.leader_epoch, batch.base_offset)
        if batch.producer is not None:
            self._producers.update(batch)

    def _roll(self) -> LogSegment:
        """Begin a new segment, and return it."""
        active = LogSegment(self.log_end_offset, self._segments[-1].next_position)
        self._segments.append(active)
        return active

    def _stamped(self, timestamp: int, offset: int) -> TimestampAndOffset:
        return TimestampAndOffset(timestamp, offset, self._epochs.epoch_at(offset))

    def _position_of(self, offset: int) -> int:
        if offset == self.log_end_offset:
            return self._segments[-1].next_position
        return self._segment_of(offset).position_of(offset)

    def _segment_of(self, offset: int) -> LogSegment:
        if not self.log_start_offset <= offset < self.log_end_offset:
            raise ApiError(ErrorCode.offset_out_of_range, f"offset {offset} is outside {self!r}")
        return self._segments[self._segment_index(offset)]

    def _segment_index(self, offset: int) -> int:
        return bisect_right(self._segments, offset, key=_BASE_OFFSET) - 1


def _is_too_old(segment: LogSegment, now: int, retention_ms: int) -> bool:
    # The latest timestamp costs O(batches), so look only where there is a limit.
    return retention_ms >= 0 and NO_TIMESTAMP != segment.max_timestamp < now - retention_ms
