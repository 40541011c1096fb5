"""Metadata and DescribeCluster: the brokers and topics in this broker's metadata."""

from collections.abc import Mapping
from typing import Final

from kio.schema.describe_cluster.v1 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.describe_cluster.v1.response import DescribeClusterBroker
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
from examples.broker.controller.metadata_cache import MetadataCache
from examples.broker.controller.new_topic import check_name
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.handlers.internal_topics import is_internal
from examples.broker.metadata import NO_LEADER, PartitionState, TopicImage
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext

BROKERS: Final = 1
CONTROLLERS: Final = 2
_ENDPOINT_ERRORS: Final = {
    BROKERS: ErrorCode.none,
    CONTROLLERS: ErrorCode.mismatched_endpoint_type,
}


async def metadata(
    admin: ClusterAdmin, context: RequestContext, request: MetadataRequest
) -> MetadataResponse:
    """Return the live brokers, and the topics requested by name or id, or all topics.

    A topic with an unknown name is created first, if the client and the cluster allow it. An error is the
    answer of its own topic or partition alone.
    """
    cache = admin.cache
    requested = () if request.topics is None else request.topics
    failed: dict[str, ApiError] = {}
    if request.allow_auto_topic_creation and admin.defaults.auto_create_topics_enable:
        unknown = [
            topic.name
            for topic in requested
            if topic.name is not None and topic.name not in cache.image.topics
        ]
        created = await admin.auto_create(unknown)
        failed = {name: error for name, error in created.items() if isinstance(error, ApiError)}
    if request.topics is None:
        topics = tuple(_known(topic, cache) for topic in cache.image.topics.values())
    else:
        topics = tuple(_requested(topic, cache, failed) for topic in dict.fromkeys(requested))
    return MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=tuple(
            MetadataResponseBroker(node_id=BrokerId(entry.broker_id), host=entry.host, port=i32(entry.port))
            for entry in cache.image.live_brokers.values()
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
    cache = admin.cache
    of_brokers = request.endpoint_type == BROKERS
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=_ENDPOINT_ERRORS.get(request.endpoint_type, ErrorCode.unsupported_endpoint_type),
        error_message=None if of_brokers else "clients can connect to brokers only, not to controllers",
        endpoint_type=request.endpoint_type,
        cluster_id=admin.controller.cluster_id,
        controller_id=BrokerId(cache.controller_id),
        brokers=tuple(
            DescribeClusterBroker(broker_id=BrokerId(entry.broker_id), host=entry.host, port=i32(entry.port))
            for entry in cache.image.live_brokers.values()
        )
        if of_brokers
        else (),
    )


def _requested(
    requested: MetadataRequestTopic, cache: MetadataCache, failed: Mapping[str, ApiError]
) -> MetadataResponseTopic:
    topics = cache.image.topics
    if requested.name is not None:
        topic = topics.get(requested.name)
        error = unknown_topic_error(requested.name)
        if requested.name in failed:
            error = failed[requested.name].code
    else:
        topic = next((topic for topic in topics.values() if topic.topic_id == requested.topic_id), None)
        error = ErrorCode.unknown_topic_id
    if topic is not None:
        return _known(topic, cache)
    return MetadataResponseTopic(
        error_code=error, name=requested.name, topic_id=requested.topic_id, partitions=()
    )


def _known(topic: TopicImage, cache: MetadataCache) -> MetadataResponseTopic:
    live = cache.image.live_brokers.keys()
    return MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=TopicName(topic.name),
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=tuple(
            MetadataResponsePartition(
                error_code=partition_error(state),
                partition_index=i32(index),
                leader_id=BrokerId(state.leader),
                leader_epoch=i32(state.leader_epoch),
                replica_nodes=tuple(BrokerId(replica) for replica in state.replicas),
                isr_nodes=tuple(BrokerId(replica) for replica in state.in_sync),
                offline_replicas=tuple(
                    BrokerId(replica) for replica in state.replicas if replica not in live
                ),
            )
            for index, state in enumerate(topic.partitions)
        ),
    )


def unknown_topic_error(name: str) -> ErrorCode:
    """Return the error of a topic that does not exist: INVALID_TOPIC_EXCEPTION if none can have that name."""
    try:
        check_name(name)
    except ApiError as error:
        return error.code
    return ErrorCode.unknown_topic_or_partition


def partition_error(state: PartitionState) -> ErrorCode:
    """Return the error of a partition in the metadata: LEADER_NOT_AVAILABLE while nobody leads."""
    return ErrorCode.leader_not_available if state.leader == NO_LEADER else ErrorCode.none
