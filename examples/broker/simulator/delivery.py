"""The check that every acknowledged record is consumed exactly once, in order."""

import struct
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition

_HEADER: Final = struct.Struct(">IQId")
HEADER_BYTES: Final = _HEADER.size


@dataclass(frozen=True, slots=True)
class BatchIdentity:
    """The records from ``base_sequence`` up to ``next_sequence`` of one producer, due at ``due_time``.

    Sequences have no gaps within a producer and partition, like those of an idempotent Kafka producer
    (KIP-98). So one header identifies every record of the batch.
    """

    producer_id: int
    base_sequence: int
    record_count: int
    due_time: float

    @property
    def next_sequence(self) -> int:
        return self.base_sequence + self.record_count

    def encode(self, size: int) -> bytes:
        """Return the header, filled up with zeros to ``size`` bytes."""
        header = _HEADER.pack(self.producer_id, self.base_sequence, self.record_count, self.due_time)
        return header.ljust(size, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> "BatchIdentity":
        return cls(*_HEADER.unpack_from(data))


class DeliveryError(Exception):
    """Raised when records were lost, duplicated, reordered or never sent. The message says where."""


class DeliveryCheck:
    """Tracks every batch that is sent, answered and consumed. Raises DeliveryError at the first wrong one.

    A batch is dropped once it is answered and consumed, so the memory is bounded by the batches in flight. A
    batch that was answered with an error may have been appended or not, and so may be consumed or not, but
    neither twice nor out of order.
    """

    def __init__(self) -> None:
        self.batches_consumed = 0
        self._next_offset: dict[TopicPartition, int] = defaultdict(int)
        self._streams: dict[tuple[TopicPartition, int], _Stream] = defaultdict(_Stream)

    def sent(self, topic_partition: TopicPartition, batch: BatchIdentity) -> None:
        self._streams[topic_partition, batch.producer_id].sent(batch)

    def acknowledged(self, topic_partition: TopicPartition, batch: BatchIdentity, base_offset: int) -> None:
        self._streams[topic_partition, batch.producer_id].acknowledged(topic_partition, batch, base_offset)

    def failed(self, topic_partition: TopicPartition, batch: BatchIdentity) -> None:
        self._streams[topic_partition, batch.producer_id].failed(batch)

    def consumed(self, topic_partition: TopicPartition, stored: RecordBatch) -> BatchIdentity:
        """Check the next batch from this partition, and return its identity."""
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
        self._streams[topic_partition, batch.producer_id].consumed(topic_partition, batch, found)
        self._next_offset[topic_partition] = stored.next_offset
        self.batches_consumed += 1
        return batch

    def check_complete(self) -> None:
        """Call it at the end. Raises DeliveryError if an acknowledged batch was not consumed."""
        for (topic_partition, producer_id), stream in self._streams.items():
            stream.check_complete(topic_partition, producer_id)


class _Stream:
    """One producer's batches in one partition. A batch is open until it is consumed or has failed."""

    __slots__ = ("_next_consumed", "_next_sent", "_open")

    def __init__(self) -> None:
        self._next_sent = 0
        self._next_consumed = 0
        # The offset of the acknowledgement (None before it) by base sequence, in the order of sending.
        self._open: dict[int, int | None] = {}

    def sent(self, batch: BatchIdentity) -> None:
        self._next_sent = batch.next_sequence
        self._open[batch.base_sequence] = None

    def acknowledged(self, topic_partition: TopicPartition, batch: BatchIdentity, base_offset: int) -> None:
        # The batch may be consumed before its answer comes: the high watermark completes both together.
        if batch.base_sequence not in self._open:
            return
        if batch.base_sequence < self._next_consumed:
            raise _lost(topic_partition, batch.producer_id, batch.base_sequence, base_offset)
        self._open[batch.base_sequence] = base_offset

    def failed(self, batch: BatchIdentity) -> None:
        self._open.pop(batch.base_sequence, None)

    def consumed(self, topic_partition: TopicPartition, batch: BatchIdentity, offset: int) -> None:
        where = f"partition {topic_partition}, offset {offset}"
        if batch.base_sequence < self._next_consumed:
            how = "out of order" if batch.base_sequence in self._open else "a second time"
            raise DeliveryError(f"{where}: {_records(batch)} consumed {how}, after {self._next_consumed - 1}")
        if batch.next_sequence > self._next_sent:
            raise DeliveryError(f"{where}: {_records(batch)} consumed, but never sent")
        for sequence, acknowledged_at in self._open.items():
            if sequence >= batch.base_sequence:
                break
            if acknowledged_at is not None:
                raise _lost(topic_partition, batch.producer_id, sequence, acknowledged_at)
        acknowledged_at = self._open.pop(batch.base_sequence, None)
        if acknowledged_at not in (None, offset):
            raise DeliveryError(f"{where}: {_records(batch)} were acknowledged at offset {acknowledged_at}")
        self._next_consumed = batch.next_sequence

    def check_complete(self, topic_partition: TopicPartition, producer_id: int) -> None:
        for sequence, acknowledged_at in self._open.items():
            if acknowledged_at is not None:
                raise _lost(topic_partition, producer_id, sequence, acknowledged_at)


def _records(batch: BatchIdentity) -> str:
    return f"records {batch.base_sequence}..{batch.next_sequence - 1} of producer {batch.producer_id}"


def _lost(topic_partition: TopicPartition, producer_id: int, sequence: int, offset: int) -> DeliveryError:
    return DeliveryError(
        f"partition {topic_partition}, offset {offset}: the batch from record {sequence} of producer "
        f"{producer_id} was acknowledged and never consumed"
    )
