"""What an append asks and what it is told, for each partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from examples.broker.errors import ErrorCode
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition

NO_ACKS: Final = 0
LEADER_ACK: Final = 1
ALL_ACKS: Final = -1


@dataclass(frozen=True, slots=True)
class ProduceParams:
    """Answer once ``required_acks`` are there (0, 1, or -1 for all), or after ``timeout`` seconds."""

    required_acks: int = ALL_ACKS
    timeout: float = 30.0


ProduceRequest = Mapping[TopicPartition, RecordBatch]


@dataclass(frozen=True, slots=True)
class PartitionProduced:
    """The answer for one partition's batch; offsets are -1 where nothing was appended."""

    error: ErrorCode
    base_offset: int = -1
    log_start_offset: int = -1


ProduceResponse = dict[TopicPartition, PartitionProduced]
