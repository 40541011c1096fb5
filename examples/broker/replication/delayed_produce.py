"""The delayed operation of an append with acks=all, which waits for the in-sync replicas."""

from collections.abc import Iterable
from dataclasses import dataclass

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.produce import PartitionProduced, Produced
from examples.broker.storage.timestamps import NO_TIMESTAMP
from examples.broker.topic_partition import TopicPartition
from purgatory import DelayedOperation


@dataclass(frozen=True, slots=True)
class PendingAcks:
    """A batch that this broker has appended to one partition and that not all in-sync replicas have yet.

    The high watermark must reach ``required_offset``, the end of the batch.
    """

    topic_partition: TopicPartition
    required_offset: int
    base_offset: int
    log_start_offset: int
    log_append_time: int = NO_TIMESTAMP

    def answer(self, error: ErrorCode) -> PartitionProduced:
        return PartitionProduced(error, self.base_offset, self.log_start_offset, self.log_append_time)


class DelayedProduce(DelayedOperation[Produced]):
    """Completes once the high watermark has reached the end of every batch (kafka.server.DelayedProduce).

    ``answered`` has the partitions with an answer, such as an error of the append. Every other partition is
    answered when its own in-sync replicas have the batch. Partitions that are still pending at the timeout
    answer REQUEST_TIMED_OUT.
    """

    __slots__ = ("_answered", "_partitions", "_pending")

    def __init__(
        self,
        timeout: float,
        partitions: HostedPartitions,
        pending: Iterable[PendingAcks],
        answered: Produced,
    ) -> None:
        super().__init__(timeout)
        self._partitions = partitions
        self._pending = list(pending)
        self._answered = dict(answered)

    def try_complete(self) -> bool:
        self._pending = [acks for acks in self._pending if not self._try_answer(acks)]
        return not self._pending and self.force_complete()

    def on_complete(self) -> Produced:
        return self._answered | {
            acks.topic_partition: acks.answer(ErrorCode.request_timed_out) for acks in self._pending
        }

    def _try_answer(self, acks: PendingAcks) -> bool:
        try:
            partition = self._partitions.leader(acks.topic_partition)
            error = partition.check_enough_replicas_reach_offset(acks.required_offset)
        except ApiError as lost_leadership:
            error = lost_leadership.code
        if error is None:
            return False
        self._answered[acks.topic_partition] = acks.answer(error)
        return True
