"""What a fetch asks and what it is told, for each partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from examples.broker.errors import ErrorCode
from examples.broker.storage.leader_epochs import NO_EPOCH, EpochEndOffset
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.segment import UNKNOWN_OFFSET_METADATA, FetchDataInfo, LogOffsetMetadata
from examples.broker.topic_partition import TopicPartition

CONSUMER: Final = -1
NOTHING_READ: Final = FetchDataInfo(UNKNOWN_OFFSET_METADATA)


@dataclass(frozen=True, slots=True)
class FetchParams:
    """One fetch as a whole, by a follower (its broker id as ``replica_id``) or by a ``CONSUMER``.

    ``max_wait`` is in seconds. ``max_bytes`` bounds the answer but for one batch, which always comes
    (KIP-74).
    """

    replica_id: int = CONSUMER
    max_wait: float = 0.5
    min_bytes: int = 1
    max_bytes: int = 50 << 20

    @property
    def from_follower(self) -> bool:
        return self.replica_id >= 0


@dataclass(frozen=True, slots=True)
class PartitionFetch:
    """Where to read one partition from, and how much of it at most.

    ``current_leader_epoch`` is the one the reader believes in, and ``last_fetched_epoch`` that of the record
    before ``fetch_offset``; -1 leaves either unchecked (KIP-320). A follower tells where its own log starts.
    """

    fetch_offset: int
    max_bytes: int = 1 << 20
    current_leader_epoch: int = NO_EPOCH
    last_fetched_epoch: int = NO_EPOCH
    log_start_offset: int = -1


FetchRequest = Mapping[TopicPartition, PartitionFetch]


@dataclass(frozen=True, slots=True)
class PartitionFetched:
    """The answer for one partition; on an error there are no batches and the offsets are -1.

    With a ``diverging_epoch`` there are no batches either: what the reader has behind the end of that epoch
    is not what the leader has there (KIP-595).
    """

    error: ErrorCode
    high_watermark: int = -1
    log_start_offset: int = -1
    info: FetchDataInfo = NOTHING_READ
    diverging_epoch: EpochEndOffset | None = None

    @property
    def must_be_told(self) -> bool:
        """Whether the reader has to know now, rather than wait for bytes."""
        return self.error is not ErrorCode.NONE or self.diverging_epoch is not None

    @property
    def batches(self) -> tuple[RecordBatch, ...]:
        return self.info.batches

    @property
    def fetch_offset_metadata(self) -> LogOffsetMetadata:
        return self.info.fetch_offset_metadata


FetchResponse = dict[TopicPartition, PartitionFetched]
