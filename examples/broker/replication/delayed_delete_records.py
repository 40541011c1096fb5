"""The wait of a deletion for all live replicas."""

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.delete_records import DeleteRecordsResponse, PartitionDeleted
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.topic_partition import TopicPartition
from purgatory import DelayedOperation


class DelayedDeleteRecords(DelayedOperation[DeleteRecordsResponse]):
    """Complete once no live replica has the records any more (kafka.server.DelayedDeleteRecords).

    Followers learn of the leader's new log start from its answers, and tell their own in their next fetch.
    ``pending`` holds the offset each partition's low watermark has to reach, ``settled`` those that have
    their answer; whichever still wait at the timeout answer REQUEST_TIMED_OUT.
    """

    __slots__ = ("_partitions", "_pending", "_settled")

    def __init__(
        self,
        timeout: float,
        partitions: HostedPartitions,
        pending: dict[TopicPartition, int],
        settled: DeleteRecordsResponse,
    ) -> None:
        super().__init__(timeout)
        self._partitions = partitions
        self._pending = pending
        self._settled = settled

    def try_complete(self) -> bool:
        self._pending = {
            entry: offset for entry, offset in self._pending.items() if not self._settle(entry, offset)
        }
        return not self._pending and self.force_complete()

    def on_complete(self) -> DeleteRecordsResponse:
        timed_out = PartitionDeleted(ErrorCode.REQUEST_TIMED_OUT)
        return self._settled | dict.fromkeys(self._pending, timed_out)

    def _settle(self, topic_partition: TopicPartition, required_offset: int) -> bool:
        try:
            low_watermark = self._partitions.low_watermark(topic_partition)
        except ApiError as lost_leadership:
            self._settled[topic_partition] = PartitionDeleted(lost_leadership.code)
            return True
        if low_watermark < required_offset:
            return False
        self._settled[topic_partition] = PartitionDeleted(ErrorCode.NONE, low_watermark)
        return True
