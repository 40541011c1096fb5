"""A deletion waits until no live replica has the deleted records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.parking import park
from purgatory import DelayedOperation, Purgatory


@dataclass(frozen=True, slots=True)
class PartitionDeleted:
    """The answer for one partition. No live replica has records below ``low_watermark``; -1 on an error."""

    error: ErrorCode
    low_watermark: int = -1


Deleted = dict[TopicPartition, PartitionDeleted]


class DelayedDeleteRecords(DelayedOperation[Deleted]):
    """Completes once no live replica has the deleted records any more (kafka.server.DelayedDeleteRecords).

    A follower learns the leader's new log start offset from a fetch response, and reports its own in its next
    fetch. ``pending`` has the offset that each partition's low watermark must reach. ``low_watermark`` raises
    ApiError when another broker leads. Partitions that still wait at the timeout are answered
    REQUEST_TIMED_OUT. ``answered`` has the partitions with an answer from the start.
    """

    __slots__ = ("_answered", "_low_watermark", "pending")

    def __init__(
        self,
        timeout: float,
        pending: Mapping[TopicPartition, int],
        answered: Deleted,
        low_watermark: Callable[[TopicPartition], int],
    ) -> None:
        super().__init__(timeout)
        self.pending = pending
        self._answered = dict(answered)
        self._low_watermark = low_watermark

    def try_complete(self) -> bool:
        self.pending = {
            entry: offset for entry, offset in self.pending.items() if not self._try_answer(entry, offset)
        }
        return not self.pending and self.force_complete()

    def on_complete(self) -> Deleted:
        timed_out = PartitionDeleted(ErrorCode.request_timed_out)
        return self._answered | dict.fromkeys(self.pending, timed_out)

    def _try_answer(self, topic_partition: TopicPartition, required_offset: int) -> bool:
        try:
            low_watermark = self._low_watermark(topic_partition)
        except ApiError as lost_leadership:
            self._answered[topic_partition] = PartitionDeleted(lost_leadership.code)
            return True
        if low_watermark < required_offset:
            return False
        self._answered[topic_partition] = PartitionDeleted(ErrorCode.none, low_watermark)
        return True


def park_deletion(deletions: Purgatory, deletion: DelayedDeleteRecords) -> DelayedDeleteRecords:
    """Have a deletion wait for each partition whose records it has deleted."""
    return park(deletions, deletion, list(deletion.pending))


def check_deletions(deletions: Purgatory, topic_partition: TopicPartition) -> None:
    """Call it when a replica's log starts later, when a broker is gone, and when another broker leads."""
    deletions.check_and_complete(topic_partition)
