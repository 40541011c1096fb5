"""The check that every acknowledged record is consumed exactly once, in order."""

from collections import defaultdict

from examples.broker.simulator.batch_identity import BatchIdentity
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition


class DeliveryError(Exception):
    """Raised when records were lost, duplicated, reordered or made up; says where."""


class DeliveryCheck:
    """Hears of every batch sent, answered and consumed; DeliveryError at the first that does not fit.

    What it holds is bounded by the batches in flight: a batch is forgotten once it is answered and consumed.
    A batch answered with an error may have been appended or not, so it may be consumed or not; but never
    twice, nor late.
    """

    def __init__(self) -> None:
        self.batches_consumed = 0
        self._next_offset: dict[TopicPartition, int] = defaultdict(int)
        self._lanes: dict[tuple[TopicPartition, int], _Lane] = defaultdict(_Lane)

    def sent(self, topic_partition: TopicPartition, batch: BatchIdentity) -> None:
        self._lanes[topic_partition, batch.producer_id].sent(batch)

    def acknowledged(self, topic_partition: TopicPartition, batch: BatchIdentity, base_offset: int) -> None:
        self._lanes[topic_partition, batch.producer_id].acknowledged(topic_partition, batch, base_offset)

    def refused(self, topic_partition: TopicPartition, batch: BatchIdentity) -> None:
        self._lanes[topic_partition, batch.producer_id].refused(batch)

    def consumed(self, topic_partition: TopicPartition, stored: RecordBatch) -> BatchIdentity:
        """The batch that came next from this partition; gives back what it holds."""
        expected, found = self._next_offset[topic_partition], stored.base_offset
        batch = BatchIdentity.decode(stored.data)
        if found != expected:
            raise DeliveryError(
                f"partition {topic_partition}, offset {expected}: the next batch consumed is at {found}, "
                f"with {_records(batch)}"
            )
        if batch.record_count != stored.record_count:
            raise DeliveryError(
                f"partition {topic_partition}, offset {found}: {stored.record_count} records, not the "
                f"{_records(batch)} that were sent"
            )
        self._lanes[topic_partition, batch.producer_id].consumed(topic_partition, batch, found)
        self._next_offset[topic_partition] = stored.next_offset
        self.batches_consumed += 1
        return batch

    def judge(self) -> None:
        """When all has been consumed: DeliveryError if something acknowledged has not."""
        for (topic_partition, producer_id), lane in self._lanes.items():
            lane.judge(topic_partition, producer_id)


class _Lane:
    """One producer's batches in one partition; each is unsettled until it is consumed or refused."""

    __slots__ = ("_next_consumed", "_next_sent", "_unsettled")

    def __init__(self) -> None:
        self._next_sent = 0
        self._next_consumed = 0
        # Base sequence -> the offset it was acknowledged at, None before; in the order sent.
        self._unsettled: dict[int, int | None] = {}

    def sent(self, batch: BatchIdentity) -> None:
        self._next_sent = batch.next_sequence
        self._unsettled[batch.base_sequence] = None

    def acknowledged(self, topic_partition: TopicPartition, batch: BatchIdentity, base_offset: int) -> None:
        # Consumed before the answer came back: the high watermark wakes both in one go.
        if batch.base_sequence not in self._unsettled:
            return
        if batch.base_sequence < self._next_consumed:
            raise _lost(topic_partition, batch.producer_id, batch.base_sequence, base_offset)
        self._unsettled[batch.base_sequence] = base_offset

    def refused(self, batch: BatchIdentity) -> None:
        self._unsettled.pop(batch.base_sequence, None)

    def consumed(self, topic_partition: TopicPartition, batch: BatchIdentity, offset: int) -> None:
        where = f"partition {topic_partition}, offset {offset}"
        if batch.base_sequence < self._next_consumed:
            how = "out of order" if batch.base_sequence in self._unsettled else "a second time"
            raise DeliveryError(f"{where}: {_records(batch)} consumed {how}, after {self._next_consumed - 1}")
        if batch.next_sequence > self._next_sent:
            raise DeliveryError(f"{where}: {_records(batch)} consumed, but never sent")
        for sequence, acknowledged_at in self._unsettled.items():
            if sequence >= batch.base_sequence:
                break
            if acknowledged_at is not None:
                raise _lost(topic_partition, batch.producer_id, sequence, acknowledged_at)
        acknowledged_at = self._unsettled.pop(batch.base_sequence, None)
        if acknowledged_at not in (None, offset):
            raise DeliveryError(f"{where}: {_records(batch)} were acknowledged at offset {acknowledged_at}")
        self._next_consumed = batch.next_sequence

    def judge(self, topic_partition: TopicPartition, producer_id: int) -> None:
        for sequence, acknowledged_at in self._unsettled.items():
            if acknowledged_at is not None:
                raise _lost(topic_partition, producer_id, sequence, acknowledged_at)


def _records(batch: BatchIdentity) -> str:
    return f"records {batch.base_sequence}..{batch.next_sequence - 1} of producer {batch.producer_id}"


def _lost(topic_partition: TopicPartition, producer_id: int, sequence: int, offset: int) -> DeliveryError:
    return DeliveryError(
        f"partition {topic_partition}, offset {offset}: the batch from record {sequence} of producer "
        f"{producer_id} was acknowledged and never consumed"
    )
