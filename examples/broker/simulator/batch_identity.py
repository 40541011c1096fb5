"""The identity of a batch's records, which the producer writes into its bytes and the consumer reads."""

import struct
from dataclasses import dataclass
from typing import Final

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
