"""What clients and followers ask of a broker's partitions, and the answers, by partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from examples.broker.errors import ErrorCode
from examples.broker.storage.leader_epochs import NO_EPOCH, EpochEndOffset
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition

NO_ACKS: Final = 0
LEADER_ACK: Final = 1
ALL_ACKS: Final = -1

# The replica id of a reader that is no follower.
CONSUMER: Final = -1

# Stands for the offset of the high watermark: delete all committed records.
HIGH_WATERMARK: Final = -1

Deletions = Mapping[TopicPartition, int]
"""The offset below which to delete, by partition."""


@dataclass(frozen=True, slots=True)
class ProduceParams:
    """The acknowledgements to wait for (0, 1, or -1 for all), and the timeout in seconds."""

    required_acks: int = ALL_ACKS
    timeout: float = 30.0


Batches = Mapping[TopicPartition, RecordBatch]


@dataclass(frozen=True, slots=True)
class FetchParams:
    """What applies to a fetch as a whole. ``replica_id`` is a follower's broker id, or ``CONSUMER``.

    ``max_wait`` is in seconds. The response has at most ``max_bytes``, except that its first batch is
    returned whatever its size (KIP-74).
    """

    replica_id: int = CONSUMER
    max_wait: float = 0.5
    min_bytes: int = 1
    max_bytes: int = 50 << 20

    @property
    def from_follower(self) -> bool:
        return self.replica_id >= 0

    def are_met_by(self, response: "Fetched") -> bool:
        """Whether the reader gets this response now, and does not wait for more."""
        return (
            self.max_wait <= 0
            or sum(fetched.size_in_bytes for fetched in response.values()) >= self.min_bytes
            or any(fetched.is_error_or_divergence for fetched in response.values())
        )


@dataclass(frozen=True, slots=True)
class PartitionFetch:
    """The offset at which to read one partition, and the most bytes to read.

    ``current_leader_epoch`` is the leader epoch that the reader knows, ``last_fetched_epoch`` the epoch of
    the record before ``fetch_offset``; -1 is not checked (KIP-320). ``log_start_offset`` is a follower's own.
    """

    fetch_offset: int
    max_bytes: int = 1 << 20
    current_leader_epoch: int = NO_EPOCH
    last_fetched_epoch: int = NO_EPOCH
    log_start_offset: int = -1


Fetches = Mapping[TopicPartition, PartitionFetch]


@dataclass(frozen=True, slots=True)
class PartitionFetched:
    """The answer for one partition. On an error it has no batches, and its offsets are -1.

    With a ``diverging_epoch`` it has no batches either: after the end of that epoch, the reader's log has
    other records than the leader's (KIP-595).
    """

    error: ErrorCode
    high_watermark: int = -1
    log_start_offset: int = -1
    batches: tuple[RecordBatch, ...] = ()
    diverging_epoch: EpochEndOffset | None = None

    @property
    def is_error_or_divergence(self) -> bool:
        """Whether the reader needs this answer now, and must not wait for bytes."""
        return self.error is not ErrorCode.none or self.diverging_epoch is not None

    @property
    def size_in_bytes(self) -> int:
        return sum([batch.size_in_bytes for batch in self.batches])


Fetched = dict[TopicPartition, PartitionFetched]
