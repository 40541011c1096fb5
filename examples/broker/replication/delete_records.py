"""What a deletion of records is told, for each partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from examples.broker.errors import ErrorCode
from examples.broker.topic_partition import TopicPartition

# In place of an offset: all that is committed.
HIGH_WATERMARK: Final = -1

# The offset below which to delete.
DeleteRecordsRequest = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class PartitionDeleted:
    """The answer for one partition: below ``low_watermark`` no live replica has anything; -1 on an error."""

    error: ErrorCode
    low_watermark: int = -1


DeleteRecordsResponse = dict[TopicPartition, PartitionDeleted]
