"""A broker's replicas, which outlive it: the log and the high watermark of each partition."""

from collections.abc import Iterable, Set
from uuid import UUID

from examples.broker.storage.leader_epochs import UNKNOWN_EPOCH_END, EpochEndOffset
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition


class Replica:
    """The log and the high watermark, and the changes that a follower makes to them for its leader.

    ``topic_id`` distinguishes a topic from an earlier one of the same name.
    """

    def __init__(self, topic_id: UUID, segment_bytes: int) -> None:
        self.topic_id = topic_id
        self.log = PartitionLog(segment_bytes)
        self.high_watermark = 0

    def __repr__(self) -> str:
        return f"<Replica {self.log!r} hw={self.high_watermark}>"

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
        self.high_watermark = max(self.high_watermark, committed)

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
            self.high_watermark = self.log.log_end_offset

    def truncate_to(self, offset: int) -> None:
        """Truncate the log. Nothing else moves the high watermark back, and this only to the new end."""
        self.log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)


class Disk:
    """The replicas that a broker finds again when it is started again (Kafka's LogManager).

    They are in memory, so they do not outlive the process.
    """

    def __init__(self) -> None:
        self._replicas: dict[TopicPartition, Replica] = {}

    def __repr__(self) -> str:
        return f"<Disk of {len(self._replicas)} replicas>"

    @property
    def topic_partitions(self) -> Set[TopicPartition]:
        """The partitions with a replica."""
        return self._replicas.keys()

    def open(self, topic_partition: TopicPartition, topic_id: UUID, segment_bytes: int) -> Replica:
        """Return the replica of a partition, which is empty if there is none of this topic."""
        replica = self._replicas.get(topic_partition)
        if replica is None or replica.topic_id != topic_id:
            replica = self._replicas[topic_partition] = Replica(topic_id, segment_bytes)
        return replica

    def delete(self, topic_partition: TopicPartition) -> None:
        """Delete a replica, if there is one."""
        self._replicas.pop(topic_partition, None)

    def retain(self, topic_ids: Set[UUID]) -> None:
        """Delete the replicas of all other topics."""
        self._replicas = {
            topic_partition: replica
            for topic_partition, replica in self._replicas.items()
            if replica.topic_id in topic_ids
        }
