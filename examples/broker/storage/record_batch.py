"""The record batch, which a log stores: a block of bytes and a few facts about it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from examples.broker.storage.timestamps import NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class ProducerSequence:
    """The first and the last sequence number of an idempotent producer's records in a batch (KIP-98)."""

    producer_id: int
    producer_epoch: int
    first_sequence: int
    last_sequence: int


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """``record_count`` records as one opaque block of bytes.

    The leader that appends the batch assigns ``base_offset`` and ``leader_epoch``. ``producer`` is None
    without idempotence. ``max_timestamp`` is in milliseconds since the epoch. The broker does not read the
    records, so that every cost is per batch, not per record. A search by time alone reads one batch.
    """

    record_count: int
    data: bytes
    base_offset: int = 0
    leader_epoch: int = 0
    producer: ProducerSequence | None = None
    max_timestamp: int = NO_TIMESTAMP

    def __post_init__(self) -> None:
        if self.record_count < 1 or not self.data:
            raise ValueError(
                f"a batch has at least one record and one byte, not {self.record_count} in {self.data!r}"
            )

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.record_count

    @property
    def size_in_bytes(self) -> int:
        return len(self.data)

    def at(self, base_offset: int, leader_epoch: int) -> Self:
        """Return the batch with the offset and the leader epoch that a leader assigns to it."""
        return type(self)(
            self.record_count,
            self.data_at(base_offset, leader_epoch),
            base_offset,
            leader_epoch,
            self.producer,
            self.max_timestamp,
        )

    def appended_at(self, wall_time: int) -> Self:
        """Return the batch with the time of its append, in milliseconds since the epoch, for all records."""
        return type(self)(
            self.record_count,
            self.data_appended_at(wall_time),
            self.base_offset,
            self.leader_epoch,
            self.producer,
            wall_time,
        )

    def data_appended_at(self, wall_time: int) -> bytes:
        """Return the bytes with this time. They stay the same if the bytes contain none."""
        return self.data

    def data_at(self, base_offset: int, leader_epoch: int) -> bytes:
        """Return the bytes with this offset and epoch. They stay the same if the bytes contain neither."""
        return self.data

    def timestamps(self) -> Iterator[tuple[int, int]]:
        """Return the offset and the timestamp of each record that has a timestamp, in order.

        Each record of a batch with unreadable records has the highest timestamp of the batch.
        """
        if self.max_timestamp != NO_TIMESTAMP:
            for offset in range(self.base_offset, self.next_offset):
                yield offset, self.max_timestamp
