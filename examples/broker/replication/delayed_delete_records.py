"""The delayed operation of a deletion, which waits for all live replicas."""

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.delete_records import Deleted, PartitionDeleted
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.topic_partition import TopicPartition
from purgatory import DelayedOperation


class DelayedDeleteRecords(DelayedOperation[Deleted]):
    """Completes once no live replica has the deleted records any more (kafka.server.DelayedDeleteRecords).

    A follower learns the leader's new log start offset from a fetch response, and reports its own in its next
    fetch. ``pending`` has the offset that each partition's low watermark must reach. ``answered`` has the
    partitions with an answer. Partitions that are still pending at the timeout answer REQUEST_TIMED_OUT.
    """

    __slots__ = ("_answered", "_partitions", "_pending")

    def __init__(
        self,
        timeout: float,
        partitions: HostedPartitions,
        pending: dict[TopicPartition, int],
        answered: Deleted,
    ) -> None:
        super().__init__(timeout)
        self._partitions = partitions
        self._pending = pending
        self._answered = answered

    def try_complete(self) -> bool:
        self._pending = {
            entry: offset for entry, offset in self._pending.items() if not self._try_answer(entry, offset)
        }
        return not self._pending and self.force_complete()

    def on_complete(self) -> Deleted:
        timed_out = PartitionDeleted(ErrorCode.request_timed_out)
        return self._answered | dict.fromkeys(self._pending, timed_out)

    def _try_answer(self, topic_partition: TopicPartition, required_offset: int) -> bool:
        try:
            low_watermark = self._partitions.low_watermark(topic_partition)
        except ApiError as lost_leadership:
            self._answered[topic_partition] = PartitionDeleted(lost_leadership.code)
            return True
        if low_watermark < required_offset:
            return False
        self._answered[topic_partition] = PartitionDeleted(ErrorCode.none, low_watermark)
        return True
