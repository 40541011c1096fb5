"""ListOffsets: the start and the end of a log, and the first record at or after a timestamp."""

from typing import Final

from kio.schema.list_offsets.v9 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.list_offsets.v9.request import ListOffsetsPartition
from kio.schema.list_offsets.v9.response import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from kio.static.primitive import i32, i64

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.storage.timestamps import (
    EARLIEST_LOCAL_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    MAX_TIMESTAMP,
)
from examples.broker.topic_partition import TopicPartition

KNOWS_OFFSET_NOT_AVAILABLE: Final = 5
"""From this version of ListOffsets on, clients know OFFSET_NOT_AVAILABLE (KIP-207)."""

_KNOWN_FROM: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL_TIMESTAMP: 8, LATEST_TIERED_TIMESTAMP: 9}
"""The special timestamps that not every version has, and the first version that has each."""


async def list_offsets(
    replicas: ReplicaManager, context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    """Return the offset for each timestamp; -1 without an error when no record is that late."""
    return ListOffsetsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _partition_response(replicas, topic.name, partition, request.replica_id, context.version)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _partition_response(
    replicas: ReplicaManager, topic: str, requested: ListOffsetsPartition, replica_id: int, version: int
) -> ListOffsetsPartitionResponse:
    index = requested.partition_index
    if version < _KNOWN_FROM.get(requested.timestamp, 0) or requested.timestamp < LATEST_TIERED_TIMESTAMP:
        return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.unsupported_version)
    try:
        partition = replicas.partitions.leader(TopicPartition(topic, index), requested.current_leader_epoch)
        found = partition.offset_for_timestamp(requested.timestamp, from_follower=replica_id >= 0)
    except ApiError as error:
        code = error.code
        if code is ErrorCode.offset_not_available and version < KNOWS_OFFSET_NOT_AVAILABLE:
            # An older client does not know that this error is retriable (KIP-207).
            code = ErrorCode.leader_not_available
        return ListOffsetsPartitionResponse(partition_index=index, error_code=code)
    if found is None:
        return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.none)
    return ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=ErrorCode.none,
        timestamp=i64(found.timestamp),
        offset=i64(found.offset),
        leader_epoch=i32(found.leader_epoch),
    )
