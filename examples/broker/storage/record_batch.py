"""The record batch, which a log stores: a block of bytes and a few facts about it. Timestamps of records."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

# Timestamps are in milliseconds since the epoch.
NO_TIMESTAMP: Final = -1
# The special timestamps of ListOffsets.
LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
# KIP-405. This broker has no remote storage, so the first one equals EARLIEST_TIMESTAMP, and nothing has the
# second one.
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5


@dataclass(frozen=True, slots=True)
class TimestampAndOffset:
    """A record's offset, its timestamp (-1 if the lookup was not by timestamp) and its leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


def wall_time_ms() -> int:
    """Return the time of day, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


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
        data = self.data_at(base_offset, leader_epoch)
        return replace(self, data=data, base_offset=base_offset, leader_epoch=leader_epoch)

    def appended_at(self, wall_time: int) -> Self:
        """Return the batch with the time of its append, in milliseconds since the epoch, for all records."""
        return replace(self, data=self.data_appended_at(wall_time), max_timestamp=wall_time)

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
