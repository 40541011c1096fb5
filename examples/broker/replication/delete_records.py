"""The request and the response of a deletion of records, by partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from examples.broker.errors import ErrorCode
from examples.broker.topic_partition import TopicPartition

# Stands for the offset of the high watermark: delete all committed records.
HIGH_WATERMARK: Final = -1

# The offset below which to delete, by partition.
Deletions = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class PartitionDeleted:
    """The answer for one partition. No live replica has records below ``low_watermark``; -1 on an error."""

    error: ErrorCode
    low_watermark: int = -1


Deleted = dict[TopicPartition, PartitionDeleted]
