"""What a fetch asks and what it is told, for each partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from examples.broker.errors import ErrorCode
from examples.broker.storage.segment import (
    UNKNOWN_OFFSET_METADATA,
    FetchDataInfo,
    LogOffsetMetadata,
    RecordBatch,
)
from examples.broker.topic_partition import TopicPartition

CONSUMER: Final = -1
NOTHING_READ: Final = FetchDataInfo(UNKNOWN_OFFSET_METADATA)


@dataclass(frozen=True, slots=True)
class FetchParams:
    """One fetch as a whole, by a follower (its broker id as ``replica_id``) or a ``CONSUMER``.

    ``max_wait`` is in seconds. ``max_bytes`` bounds the answer but for one batch, which always comes
    (KIP-74).
    """

    replica_id: int = CONSUMER
    max_wait: float = 0.5
    min_bytes: int = 1
    max_bytes: int = 50 << 20

    @property
    def from_follower(self) -> bool:
        return self.replica_id != CONSUMER


@dataclass(frozen=True, slots=True)
class PartitionFetch:
    """Where to read one partition from, and how much of it at most."""

    fetch_offset: int
    max_bytes: int = 1 << 20


FetchRequest = Mapping[TopicPartition, PartitionFetch]


@dataclass(frozen=True, slots=True)
class PartitionFetched:
    """The answer for one partition; on an error there are no batches and the offsets are -1."""

    error: ErrorCode
    high_watermark: int = -1
    log_start_offset: int = -1
    info: FetchDataInfo = NOTHING_READ

    @property
    def batches(self) -> tuple[RecordBatch, ...]:
        return self.info.batches

    @property
    def fetch_offset_metadata(self) -> LogOffsetMetadata:
        return self.info.fetch_offset_metadata


FetchResponse = dict[TopicPartition, PartitionFetched]
