"""DescribeLogDirs and DescribeProducers: the logs of this broker, as administrators see them."""

from typing import Final

from kio.schema.describe_log_dirs.v4 import DescribeLogDirsRequest, DescribeLogDirsResponse
from kio.schema.describe_log_dirs.v4.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kio.schema.describe_producers.v0 import DescribeProducersRequest, DescribeProducersResponse
from kio.schema.describe_producers.v0.response import PartitionResponse, ProducerState, TopicResponse
from kio.schema.types import ProducerId, TopicName
from kio.static.primitive import i32, i64

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.protocol.apis import NO_THROTTLE, RequestContext
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.storage.producer_state import KnownProducer
from examples.broker.topic_partition import TopicPartition, by_topic

MEMORY: Final = "memory"
"""Stands for the directory, since the replicas are in memory."""
_UNKNOWN: Final = -1


async def describe_log_dirs(
    replicas: ReplicaManager, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Return the one directory of this broker, with the requested replicas that it has, or all of them."""
    wanted = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions
        }
    hosted = {
        partition.topic_partition: partition
        for partition in replicas.partitions.hosted()
        if wanted is None or partition.topic_partition in wanted
    }
    topics = tuple(
        DescribeLogDirsTopic(
            name=TopicName(topic),
            partitions=tuple(
                DescribeLogDirsPartition(
                    partition_index=i32(index),
                    partition_size=i64(partition.log.size_in_bytes),
                    # As in Kafka, how far the log is behind the high watermark, and not behind the leader.
                    offset_lag=i64(max(0, partition.high_watermark - partition.log.log_end_offset)),
                    is_future_key=False,
                )
                for index, partition in partitions
            ),
        )
        for topic, partitions in by_topic((entry, hosted[entry]) for entry in sorted(hosted)).items()
    )
    directory = DescribeLogDirsResult(
        error_code=ErrorCode.none,
        log_dir=MEMORY,
        topics=topics,
        total_bytes=i64(_UNKNOWN),
        usable_bytes=i64(_UNKNOWN),
    )
    return DescribeLogDirsResponse(throttle_time=NO_THROTTLE, error_code=ErrorCode.none, results=(directory,))


async def describe_producers(
    replicas: ReplicaManager, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Return the producers of each partition that this broker leads (KIP-664). None has a transaction."""
    return DescribeProducersResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(
                    _described(replicas, topic.name, index) for index in topic.partition_indexes
                ),
            )
            for topic in request.topics
        ),
    )


def _described(replicas: ReplicaManager, topic: TopicName, index: i32) -> PartitionResponse:
    producers: list[KnownProducer] = []
    error = ErrorCode.none
    try:
        producers = replicas.partitions.leader(TopicPartition(topic, index)).log.producers()
    except ApiError as refused:
        error = refused.code
    return PartitionResponse(
        partition_index=index,
        error_code=error,
        active_producers=tuple(
            ProducerState(
                producer_id=ProducerId(producer.producer_id),
                producer_epoch=i32(producer.epoch),
                last_sequence=i32(producer.last_sequence),
                last_timestamp=i64(producer.last_timestamp),
                coordinator_epoch=i32(_UNKNOWN),
            )
            for producer in producers
        ),
    )
