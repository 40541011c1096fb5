"""DescribeTopicPartitions: topics and their partitions, page by page."""

from collections.abc import Set
from itertools import islice
from typing import Final

from kio.schema.describe_topic_partitions.v0 import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kio.schema.describe_topic_partitions.v0.response import (
    Cursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.metadata_cache import MetadataCache
from examples.broker.errors import ErrorCode
from examples.broker.handlers.internal_topics import is_internal
from examples.broker.handlers.metadata import partition_error, unknown_topic_error
from examples.broker.metadata import PartitionState
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext

# Kafka's max.request.partition.size.limit.
MOST_PARTITIONS: Final = 2000


async def describe_topic_partitions(
    admin: ClusterAdmin, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Return the requested topics, or all of them, in the order of their names (KIP-966).

    A response has a limited number of partitions. Its cursor names the first one that did not fit, and the
    next request begins there. An unknown topic has an error.
    """
    cache = admin.cache
    requested = {topic.name for topic in request.topics} or cache.image.topics.keys()
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
        topic = _described(cache, name, start, left)
        left -= len(topic.partitions)
        known = cache.image.topics.get(name)
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


def _described(
    cache: MetadataCache, name: str, start: int, most: int
) -> DescribeTopicPartitionsResponseTopic:
    topic = cache.image.topics.get(name)
    if topic is None:
        return DescribeTopicPartitionsResponseTopic(
            error_code=unknown_topic_error(name),
            name=TopicName(name),
            topic_id=None,
            partitions=(),
        )
    live = cache.image.live_brokers.keys()
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.none,
        name=TopicName(name),
        topic_id=topic.topic_id,
        is_internal=is_internal(name),
        partitions=tuple(
            _partition(index, state, live)
            for index, state in islice(enumerate(topic.partitions), start, start + most)
        ),
    )


def _partition(index: int, state: PartitionState, live: Set[int]) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=partition_error(state),
        partition_index=i32(index),
        leader_id=BrokerId(state.leader),
        leader_epoch=i32(state.leader_epoch),
        replica_nodes=tuple(BrokerId(replica) for replica in state.replicas),
        isr_nodes=tuple(BrokerId(replica) for replica in state.in_sync),
        # There are none. Java's client cannot read null, which the protocol allows.
        eligible_leader_replicas=(),
        last_known_elr=(),
        offline_replicas=tuple(BrokerId(replica) for replica in state.replicas if replica not in live),
    )
