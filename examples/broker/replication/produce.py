"""The request and the response of an append, by partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from examples.broker.errors import ErrorCode
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.timestamps import NO_TIMESTAMP
from examples.broker.topic_partition import TopicPartition

NO_ACKS: Final = 0
LEADER_ACK: Final = 1
ALL_ACKS: Final = -1


@dataclass(frozen=True, slots=True)
class ProduceParams:
    """The acknowledgements to wait for (0, 1, or -1 for all), and the timeout in seconds."""

    required_acks: int = ALL_ACKS
    timeout: float = 30.0


Batches = Mapping[TopicPartition, RecordBatch]


@dataclass(frozen=True, slots=True)
class PartitionProduced:
    """The answer for one partition's batch. The offsets are -1 when nothing was appended.

    ``log_append_time`` is -1, too, where records keep the times of their producers.
    """

    error: ErrorCode
    base_offset: int = -1
    log_start_offset: int = -1
    log_append_time: int = NO_TIMESTAMP


Produced = dict[TopicPartition, PartitionProduced]
