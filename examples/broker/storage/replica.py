"""A broker's replica of a partition: its log and its high watermark."""

from collections.abc import Iterable
from uuid import UUID

from examples.broker.storage.leader_epochs import UNKNOWN_EPOCH_END, EpochEndOffset
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.partition_directory import HIGH_WATERMARK, PartitionDirectory
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.segment import LogOffsetMetadata


class Replica:
    """The log and the high watermark, and the changes that a follower makes to them for its leader.

    It outlives the broker: a broker that is started again goes on with it. With a directory, the log is in
    its files, and ``checkpoint`` puts the high watermark there. ``topic_id`` distinguishes a topic from an
    earlier one of the same name.
    """

    def __init__(
        self, topic_id: UUID, segment_bytes: int, directory: PartitionDirectory | None = None
    ) -> None:
        self.topic_id = topic_id
        self.log = PartitionLog(segment_bytes, directory)
        self._directory = directory
        self._checkpointed = 0 if directory is None else directory.load(HIGH_WATERMARK)
        committed = min(max(self._checkpointed, self.log.log_start_offset), self.log.log_end_offset)
        self.high_watermark_metadata = self.log.locate(committed)

    def __repr__(self) -> str:
        return f"<Replica {self.log!r} hw={self.high_watermark}>"

    @property
    def high_watermark(self) -> int:
        return self.high_watermark_metadata.message_offset

    def move_high_watermark(self, mark: LogOffsetMetadata) -> None:
        self.high_watermark_metadata = mark

    def append_as_follower(
        self, batches: Iterable[RecordBatch], leader_high_watermark: int, leader_log_start_offset: int
    ) -> None:
        """Delete what the leader has deleted, append its batches, and take over its high watermark."""
        # Delete first. A leader whose log starts inside a batch sends the whole batch, and records at the
        # same offsets in this log, perhaps from an earlier leader, would be in its way.
        self.log.increment_log_start_offset(min(leader_log_start_offset, self.log.log_end_offset))
        for batch in batches:
            self.log.append_as_follower(batch)
        committed = min(leader_high_watermark, self.log.log_end_offset)
        if committed > self.high_watermark:
            self.move_high_watermark(self.log.locate(committed))

    def truncate_to_divergence(self, leader_end: EpochEndOffset) -> None:
        """Truncate what the leader does not have, given the end of a leader epoch in its log (KIP-101).

        Records after the end of that epoch in this log are not in the leader's log either. When the logs
        diverge in an earlier epoch, too, the next fetch finds it, and the follower truncates once more.
        """
        own_end = self.log.end_offset_for_epoch(leader_end.epoch)
        known = own_end != UNKNOWN_EPOCH_END
        self.truncate_to(min(own_end.end_offset, leader_end.end_offset) if known else leader_end.end_offset)

    def return_to_range(self, leader_log_start_offset: int, leader_log_end_offset: int) -> None:
        """Truncate to the end of the leader's log; or restart at its start, if the next records are deleted.

        After Kafka's AbstractFetcherThread.fetchOffsetAndTruncate.
        """
        if leader_log_end_offset < self.log.log_end_offset:
            self.truncate_to(leader_log_end_offset)
        elif leader_log_start_offset > self.log.log_end_offset:
            self.log.truncate_fully_and_start_at(leader_log_start_offset)
            self.move_high_watermark(self.log.log_end_offset_metadata)

    def truncate_to(self, offset: int) -> None:
        """Truncate the log. Nothing else moves the high watermark back, and this only to the new end."""
        self.log.truncate_to(offset)
        if self.high_watermark >= self.log.log_end_offset:
            self.move_high_watermark(self.log.log_end_offset_metadata)

    def checkpoint(self) -> None:
        """Save the high watermark. Raises ApiError KAFKA_STORAGE_ERROR."""
        if self._directory is not None and self.high_watermark != self._checkpointed:
            self._directory.save(HIGH_WATERMARK, self.high_watermark)
            self._checkpointed = self.high_watermark

    def delete(self) -> None:
        """Remove the files. Raises ApiError KAFKA_STORAGE_ERROR."""
        if self._directory is not None:
            self._directory.delete()
