"""Metadata, DescribeCluster and DescribeTopicPartitions: what this broker knows of brokers and topics."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from kio.schema.describe_cluster.v1 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.describe_cluster.v1.response import DescribeClusterBroker
from kio.schema.describe_topic_partitions.v0 import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kio.schema.describe_topic_partitions.v0.response import (
    Cursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kio.schema.metadata.v13 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v13.request import MetadataRequestTopic
from kio.schema.metadata.v13.response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.new_topic import check_name
from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import NO_LEADER, MetadataImage, TopicImage
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext

# Kafka's max.request.partition.size.limit.
MOST_PARTITIONS: Final = 2000
BROKERS: Final = 1
CONTROLLERS: Final = 2
_ENDPOINT_ERRORS: Final = {
    BROKERS: ErrorCode.none,
    CONTROLLERS: ErrorCode.mismatched_endpoint_type,
}

# The two APIs that describe partitions have classes of their own with the same fields.
PartitionT = TypeVar("PartitionT")


async def metadata(
    admin: ClusterAdmin, context: RequestContext, request: MetadataRequest
) -> MetadataResponse:
    """Return the live brokers, and the topics requested by name or id, or all topics.

    A topic with an unknown name is created first, if the client and the cluster allow it. An error is the
    answer of its own topic or partition alone.
    """
    cache = admin.cache
    failed: dict[str, ApiError] = {}
    if request.allow_auto_topic_creation and admin.defaults.auto_create_topics_enable:
        unknown = [
            topic.name
            for topic in request.topics or ()
            if topic.name is not None and topic.name not in cache.image.topics
        ]
        created = await admin.auto_create(unknown)
        failed = {name: error for name, error in created.items() if isinstance(error, ApiError)}
    image = cache.image
    if request.topics is None:
        topics = tuple(_known(topic, image) for topic in image.topics.values())
    else:
        topics = tuple(_requested(topic, image, failed) for topic in dict.fromkeys(request.topics))
    return MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=tuple(
            MetadataResponseBroker(node_id=BrokerId(entry.broker_id), host=entry.host, port=i32(entry.port))
            for entry in image.live_brokers.values()
        ),
        cluster_id=admin.controller.cluster_id,
        controller_id=BrokerId(cache.controller_id),
        topics=topics,
        error_code=ErrorCode.none,
    )


async def describe_cluster(
    admin: ClusterAdmin, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Return the live brokers. The controller has no address of its own."""
    of_brokers = request.endpoint_type == BROKERS
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=_ENDPOINT_ERRORS.get(request.endpoint_type, ErrorCode.unsupported_endpoint_type),
        error_message=None if of_brokers else "clients can connect to brokers only, not to controllers",
        endpoint_type=request.endpoint_type,
        cluster_id=admin.controller.cluster_id,
        controller_id=BrokerId(admin.cache.controller_id),
        brokers=tuple(
            DescribeClusterBroker(broker_id=BrokerId(entry.broker_id), host=entry.host, port=i32(entry.port))
            for entry in admin.cache.image.live_brokers.values()
            if of_brokers
        ),
    )


async def describe_topic_partitions(
    admin: ClusterAdmin, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Return the requested topics, or all of them, in the order of their names (KIP-966).

    A response has a limited number of partitions. Its cursor names the first one that did not fit, and the
    next request begins there. An unknown topic has an error.
    """
    image = admin.cache.image
    requested = {topic.name for topic in request.topics} or image.topics.keys()
    first_name, first_partition = "", 0
    if request.cursor is not None:
        first_name, first_partition = request.cursor.topic_name, max(0, request.cursor.partition_index)
    left = max(1, min(MOST_PARTITIONS, request.response_partition_limit))
    described: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor = None
    for name in sorted(requested):
        if name < first_name:
            continue
        start = first_partition if name == first_name else 0
        topic = _described(image, name, start, left)
        left -= len(topic.partitions)
        known = image.topics.get(name)
        rest = start + len(topic.partitions)
        if known is not None and rest < len(known.partitions):
            if topic.partitions:
                described.append(topic)
            next_cursor = Cursor(topic_name=TopicName(name), partition_index=i32(rest))
            break
        described.append(topic)
    return DescribeTopicPartitionsResponse(
        throttle_time=NO_THROTTLE, topics=tuple(described), next_cursor=next_cursor
    )


def _requested(
    requested: MetadataRequestTopic, image: MetadataImage, failed: Mapping[str, ApiError]
) -> MetadataResponseTopic:
    if requested.name is not None:
        topic = image.topics.get(requested.name)
        error = _unknown_topic_error(requested.name)
        if requested.name in failed:
            error = failed[requested.name].code
    else:
        topic = next((topic for topic in image.topics.values() if topic.topic_id == requested.topic_id), None)
        error = ErrorCode.unknown_topic_id
    if topic is not None:
        return _known(topic, image)
    return MetadataResponseTopic(
        error_code=error, name=requested.name, topic_id=requested.topic_id, partitions=()
    )


def _known(topic: TopicImage, image: MetadataImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=TopicName(topic.name),
        topic_id=topic.topic_id,
        is_internal=topic.name == OFFSETS_TOPIC,
        partitions=_partitions(MetadataResponsePartition, topic, image),
    )


def _described(
    image: MetadataImage, name: str, start: int, most: int
) -> DescribeTopicPartitionsResponseTopic:
    topic = image.topics.get(name)
    if topic is None:
        return DescribeTopicPartitionsResponseTopic(
            error_code=_unknown_topic_error(name), name=TopicName(name), topic_id=None, partitions=()
        )
    # There are no eligible leader replicas. Java's client cannot read null, which the protocol allows.
    partition = partial(
        DescribeTopicPartitionsResponsePartition, eligible_leader_replicas=(), last_known_elr=()
    )
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.none,
        name=TopicName(name),
        topic_id=topic.topic_id,
        is_internal=name == OFFSETS_TOPIC,
        partitions=_partitions(partition, topic, image, start, start + most),
    )


def _partitions(
    partition: Callable[..., PartitionT],
    topic: TopicImage,
    image: MetadataImage,
    start: int = 0,
    stop: int | None = None,
) -> tuple[PartitionT, ...]:
    live = image.live_brokers.keys()
    return tuple(
        partition(
            error_code=ErrorCode.leader_not_available if state.leader == NO_LEADER else ErrorCode.none,
            partition_index=i32(index),
            leader_id=BrokerId(state.leader),
            leader_epoch=i32(state.leader_epoch),
            replica_nodes=tuple(BrokerId(replica) for replica in state.replicas),
            isr_nodes=tuple(BrokerId(replica) for replica in state.in_sync),
            offline_replicas=tuple(BrokerId(replica) for replica in state.replicas if replica not in live),
        )
        for index, state in islice(enumerate(topic.partitions), start, stop)
    )


def _unknown_topic_error(name: str) -> ErrorCode:
    """Return the error of a topic that does not exist: INVALID_TOPIC_EXCEPTION if none can have that name."""
    try:
        check_name(name)
    except ApiError as error:
        return error.code
    return ErrorCode.unknown_topic_or_partition
