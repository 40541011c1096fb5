"""A produce with acks=all waits until all in-sync replicas have its records."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from examples.broker.errors import ErrorCode
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.parking import park
from purgatory import DelayedOperation, Purgatory


@dataclass(frozen=True, slots=True)
class PartitionProduced:
    """The answer for one partition's batch. The offsets are -1 when nothing was appended.

    ``log_append_time`` is -1, too, where records keep the times of their producers.
    """

    error: ErrorCode
    base_offset: int = -1
    log_start_offset: int = -1
    log_append_time: int = -1


Produced = dict[TopicPartition, PartitionProduced]


@dataclass(frozen=True, slots=True)
class PendingAcks:
    """A batch that the leader has appended, and that not all in-sync replicas have yet.

    The high watermark must reach ``required_offset``, the end of the batch.
    """

    topic_partition: TopicPartition
    required_offset: int
    base_offset: int
    log_start_offset: int
    log_append_time: int = -1

    def answer(self, error: ErrorCode) -> PartitionProduced:
        return PartitionProduced(error, self.base_offset, self.log_start_offset, self.log_append_time)


class DelayedProduce(DelayedOperation[Produced]):
    """Completes once the high watermark has reached the end of every batch (kafka.server.DelayedProduce).

    ``acknowledged`` tells whether it has reached an offset of a partition: the error code of the answer, or
    None while the batch must wait. Batches that still wait at the timeout are answered REQUEST_TIMED_OUT.
    ``answered`` has the partitions with an answer from the start, such as an error of the append.
    """

    __slots__ = ("_acknowledged", "_answered", "pending")

    def __init__(
        self,
        timeout: float,
        pending: Collection[PendingAcks],
        answered: Produced,
        acknowledged: Callable[[TopicPartition, int], ErrorCode | None],
    ) -> None:
        super().__init__(timeout)
        self.pending = pending
        self._answered = dict(answered)
        self._acknowledged = acknowledged

    def try_complete(self) -> bool:
        self.pending = [acks for acks in self.pending if not self._try_answer(acks)]
        return not self.pending and self.force_complete()

    def on_complete(self) -> Produced:
        timed_out = ErrorCode.request_timed_out
        return self._answered | {acks.topic_partition: acks.answer(timed_out) for acks in self.pending}

    def _try_answer(self, acks: PendingAcks) -> bool:
        error = self._acknowledged(acks.topic_partition, acks.required_offset)
        if error is None:
            return False
        self._answered[acks.topic_partition] = acks.answer(error)
        return True


def park_produce(produces: Purgatory, produce: DelayedProduce) -> DelayedProduce:
    """Have a produce wait for each partition that it has written to."""
    return park(produces, produce, [acks.topic_partition for acks in produce.pending])


def check_produces(produces: Purgatory, topic_partition: TopicPartition) -> None:
    """Call it when the high watermark has moved, and when another broker leads."""
    produces.check_and_complete(topic_partition)
