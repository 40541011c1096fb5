"""OffsetForLeaderEpoch: the end of a leader epoch, by which consumers detect a truncation (KIP-320)."""

from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderPartition
from kio.schema.offset_for_leader_epoch.v4.response import EpochEndOffset, OffsetForLeaderTopicResult
from kio.static.primitive import i32, i64

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition


async def offset_for_leader_epoch(
    replicas: ReplicaManager, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Return the largest epoch of each log that is at most the requested one, and its end offset."""
    return OffsetForLeaderEpochResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    _partition_result(replicas, topic.topic, partition) for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _partition_result(
    replicas: ReplicaManager, topic: str, requested: OffsetForLeaderPartition
) -> EpochEndOffset:
    try:
        topic_partition = TopicPartition(topic, requested.partition)
        log = replicas.partitions.leader(topic_partition, requested.current_leader_epoch).log
        end = log.end_offset_for_epoch(requested.leader_epoch)
    except ApiError as error:
        return EpochEndOffset(partition=requested.partition, error_code=error.code)
    return EpochEndOffset(
        partition=requested.partition,
        error_code=ErrorCode.none,
        leader_epoch=i32(end.epoch),
        end_offset=i64(end.end_offset),
    )
