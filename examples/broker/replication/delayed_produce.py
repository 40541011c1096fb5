"""The wait of an append with acks=all for the in-sync replicas."""

from collections.abc import Iterable
from dataclasses import dataclass

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.produce import PartitionProduced, ProduceResponse
from examples.broker.topic_partition import TopicPartition
from purgatory import DelayedOperation


@dataclass(frozen=True, slots=True)
class PendingAcks:
    """One partition's batch, appended here and not everywhere yet: it ends at ``required_offset``."""

    topic_partition: TopicPartition
    required_offset: int
    base_offset: int
    log_start_offset: int

    def answer(self, error: ErrorCode) -> PartitionProduced:
        return PartitionProduced(error, self.base_offset, self.log_start_offset)


class DelayedProduce(DelayedOperation[ProduceResponse]):
    """Complete once the high watermark has passed every batch (kafka.server.DelayedProduce).

    ``settled`` are the partitions that have their answer already, such as an error at append time. Each of
    the others gets its answer when its own replicas are done; whichever still wait at the timeout answer
    REQUEST_TIMED_OUT.
    """

    __slots__ = ("_partitions", "_pending", "_settled")

    def __init__(
        self,
        timeout: float,
        partitions: HostedPartitions,
        pending: Iterable[PendingAcks],
        settled: ProduceResponse,
    ) -> None:
        super().__init__(timeout)
        self._partitions = partitions
        self._pending = list(pending)
        self._settled = dict(settled)

    def try_complete(self) -> bool:
        self._pending = [acks for acks in self._pending if not self._settle(acks)]
        return not self._pending and self.force_complete()

    def on_complete(self) -> ProduceResponse:
        return self._settled | {
            acks.topic_partition: acks.answer(ErrorCode.REQUEST_TIMED_OUT) for acks in self._pending
        }

    def _settle(self, acks: PendingAcks) -> bool:
        try:
            partition = self._partitions.leader(acks.topic_partition)
            error = partition.check_enough_replicas_reach_offset(acks.required_offset)
        except ApiError as lost_leadership:
            error = lost_leadership.code
        if error is None:
            return False
        self._settled[acks.topic_partition] = acks.answer(error)
        return True
