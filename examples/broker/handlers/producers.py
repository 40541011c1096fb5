"""DescribeProducers: the idempotent producers that partitions know."""

from kio.schema.describe_producers.v0 import DescribeProducersRequest, DescribeProducersResponse
from kio.schema.describe_producers.v0.response import PartitionResponse, ProducerState, TopicResponse
from kio.schema.types import ProducerId, TopicName
from kio.static.primitive import i32, i64

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition

_NO_COORDINATOR = i32(-1)


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
    try:
        producers = replicas.partitions.leader(TopicPartition(topic, index)).log.producers()
    except ApiError as error:
        return PartitionResponse(
            partition_index=index,
            error_code=error.code,
            active_producers=(),
        )
    return PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.none,
        active_producers=tuple(
            ProducerState(
                producer_id=ProducerId(producer.producer_id),
                producer_epoch=i32(producer.epoch),
                last_sequence=i32(producer.last_sequence),
                last_timestamp=i64(producer.last_timestamp),
                coordinator_epoch=_NO_COORDINATOR,
            )
            for producer in producers
        ),
    )
