"""Which records a batch holds, written into its bytes by the producer and read back by the consumer."""

import struct
from dataclasses import dataclass
from typing import Final

_HEADER: Final = struct.Struct(">IQId")
HEADER_BYTES: Final = _HEADER.size


@dataclass(frozen=True, slots=True)
class BatchIdentity:
    """The records ``base_sequence..next_sequence`` of one producer in one partition, due at ``due_time``.

    Sequences are per producer and partition, without gaps, as an idempotent Kafka producer's are (KIP-98):
    one header for the batch names every record in it.
    """

    producer_id: int
    base_sequence: int
    record_count: int
    due_time: float

    @property
    def next_sequence(self) -> int:
        return self.base_sequence + self.record_count

    def encode(self, size: int) -> bytes:
        """The header, filled up to ``size`` bytes."""
        header = _HEADER.pack(self.producer_id, self.base_sequence, self.record_count, self.due_time)
        return header.ljust(size, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> "BatchIdentity":
        return cls(*_HEADER.unpack_from(data))
