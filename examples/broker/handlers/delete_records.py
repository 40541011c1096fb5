"""DeleteRecords: delete the start of logs."""

from kio.schema.delete_records.v2 import DeleteRecordsRequest, DeleteRecordsResponse
from kio.schema.delete_records.v2.response import DeleteRecordsPartitionResult, DeleteRecordsTopicResult
from kio.static.primitive import i32, i64

from examples.broker.errors import ApiError
from examples.broker.handlers.internal_topics import check_not_internal
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.delete_records import Deleted, PartitionDeleted


async def delete_records(
    replicas: ReplicaManager, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Delete the records below the given offsets, and answer when no live replica has them any more."""
    offsets: dict[TopicPartition, int] = {}
    refused: Deleted = {}
    for topic in request.topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            try:
                check_not_internal(topic.name)
                offsets[topic_partition] = partition.offset
            except ApiError as error:
                refused[topic_partition] = PartitionDeleted(error.code)
    deleted = refused | await replicas.delete_records(request.timeout.total_seconds(), offsets)
    return DeleteRecordsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    _partition_result(
                        partition.partition_index,
                        deleted[TopicPartition(topic.name, partition.partition_index)],
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _partition_result(index: i32, deleted: PartitionDeleted) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index,
        low_watermark=i64(deleted.low_watermark),
        error_code=deleted.error,
    )
