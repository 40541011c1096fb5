"""A broker's own copy of a partition: its log, and how much of that is known to be committed."""

from collections.abc import Iterable

from examples.broker.storage.leader_epochs import UNKNOWN_EPOCH_END, EpochEndOffset
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.segment import LogOffsetMetadata
from examples.broker.storage.stored_partition import StoredPartition


class LocalReplica:
    """The log and its high watermark, and what a follower does to them on the word of its leader.

    The high watermark is in the store whenever it moves, so that a broker that starts again goes on from it.
    """

    __slots__ = ("_stored", "high_watermark_metadata", "log")

    def __init__(self, stored: StoredPartition) -> None:
        self.log = stored.log
        committed = min(max(stored.high_watermark, self.log.log_start_offset), self.log.log_end_offset)
        self.high_watermark_metadata = self.log.locate(committed)
        self._stored = stored

    def __repr__(self) -> str:
        return f"<LocalReplica {self.log!r} hw={self.high_watermark}>"

    @property
    def high_watermark(self) -> int:
        return self.high_watermark_metadata.message_offset

    def move_high_watermark(self, mark: LogOffsetMetadata) -> None:
        self.high_watermark_metadata = mark
        self._stored.high_watermark = mark.message_offset

    def append_as_follower(
        self, batches: Iterable[RecordBatch], leader_high_watermark: int, leader_log_start_offset: int
    ) -> None:
        """Give up what the leader gave up, store what it sends, and commit what it has committed of that."""
        # First, since a leader's log that starts inside a batch sends the whole of it: what is here of those
        # offsets, perhaps of another leader, has to be out of the way.
        self.log.increment_log_start_offset(min(leader_log_start_offset, self.log.log_end_offset))
        for batch in batches:
            self.log.append_as_follower(batch)
        committed = min(leader_high_watermark, self.log.log_end_offset)
        if committed > self.high_watermark:
            self.move_high_watermark(self.log.locate(committed))

    def truncate_to_divergence(self, leader_end: EpochEndOffset) -> None:
        """Drop what the leader does not have, given where an epoch ends in its log (KIP-101).

        What lies behind the end of that epoch here is not the leader's either. The logs may diverge in
        earlier epochs, too: the next fetch finds out, and this is called again.
        """
        own_end = self.log.end_offset_for_epoch(leader_end.epoch)
        known = own_end != UNKNOWN_EPOCH_END
        self.truncate_to(min(own_end.end_offset, leader_end.end_offset) if known else leader_end.end_offset)

    def return_to_range(self, leader_log_start_offset: int, leader_log_end_offset: int) -> None:
        """Cut what the leader does not have; or begin anew where it starts, if it gave up what comes next.

        As Kafka's AbstractFetcherThread.fetchOffsetAndTruncate.
        """
        if leader_log_end_offset < self.log.log_end_offset:
            self.truncate_to(leader_log_end_offset)
        elif leader_log_start_offset > self.log.log_end_offset:
            self.log.truncate_fully_and_start_at(leader_log_start_offset)
            self.move_high_watermark(self.log.log_end_offset_metadata)

    def truncate_to(self, offset: int) -> None:
        """Cut the log; the one thing that takes the high watermark back, and only to the new end."""
        self.log.truncate_to(offset)
        if self.high_watermark >= self.log.log_end_offset:
            self.move_high_watermark(self.log.log_end_offset_metadata)
