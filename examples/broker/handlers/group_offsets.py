"""OffsetCommit, OffsetDelete and OffsetFetch: the committed offsets of groups."""

from collections.abc import Mapping
from typing import Final, TypeVar

from kio.schema.offset_commit.v9 import OffsetCommitRequest, OffsetCommitResponse
from kio.schema.offset_commit.v9.request import OffsetCommitRequestTopic
from kio.schema.offset_commit.v9.response import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from kio.schema.offset_delete.v0 import OffsetDeleteRequest, OffsetDeleteResponse
from kio.schema.offset_delete.v0.request import OffsetDeleteRequestTopic
from kio.schema.offset_delete.v0.response import OffsetDeleteResponsePartition, OffsetDeleteResponseTopic
from kio.schema.offset_fetch.v9 import OffsetFetchRequest, OffsetFetchResponse
from kio.schema.offset_fetch.v9.request import OffsetFetchRequestGroup
from kio.schema.offset_fetch.v9.response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from examples.broker.controller.metadata_cache import MetadataCache
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.offsets import NO_OFFSET, CommittedOffset
from examples.broker.group.requests import CommitRequest, MemberIdentity
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.topic_partition import TopicPartition, by_topic

KNOWS_GROUP_ID_NOT_FOUND: Final = 9
"""From this version of OffsetCommit on, clients know GROUP_ID_NOT_FOUND (KIP-848)."""

# The two APIs have classes of their own with the same fields.
AnswerT = TypeVar("AnswerT", OffsetCommitResponsePartition, OffsetDeleteResponsePartition)


async def offset_commit(
    coordinator: GroupCoordinator, cache: MetadataCache, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    """Commit offsets, and answer once all in-sync replicas have them.

    The error of a partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION.
    """
    offsets: dict[TopicPartition, CommittedOffset] = {}
    errors: dict[TopicPartition, ErrorCode] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            entry = TopicPartition(topic.name, partition.partition_index)
            if cache.image.partition(entry) is None:
                errors[entry] = ErrorCode.unknown_topic_or_partition
            else:
                offsets[entry] = CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                )
    identity = MemberIdentity(request.member_id, request.group_instance_id)
    try:
        errors |= await coordinator.commit_offsets(
            CommitRequest(request.group_id, offsets, request.generation_id_or_member_epoch, identity)
        )
    except ApiError as refused:
        code = refused.code
        if code is ErrorCode.group_id_not_found and context.version < KNOWS_GROUP_ID_NOT_FOUND:
            code = ErrorCode.illegal_generation
        errors |= dict.fromkeys(offsets, code)
    return OffsetCommitResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=_answers(OffsetCommitResponsePartition, topic, errors),
            )
            for topic in request.topics
        ),
    )


async def offset_delete(
    coordinator: GroupCoordinator, cache: MetadataCache, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    """Delete committed offsets of a group, and answer once all in-sync replicas have the deletion."""
    requested = [
        TopicPartition(topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    known = [entry for entry in requested if cache.image.partition(entry) is not None]
    errors = dict.fromkeys(requested, ErrorCode.unknown_topic_or_partition)
    try:
        errors |= await coordinator.delete_offsets(request.group_id, known)
    except ApiError as refused:
        return OffsetDeleteResponse(throttle_time=NO_THROTTLE, error_code=refused.code, topics=())
    return OffsetDeleteResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=_answers(OffsetDeleteResponsePartition, topic, errors),
            )
            for topic in request.topics
        ),
    )


async def offset_fetch(
    coordinator: GroupCoordinator, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Return the committed offsets of groups. Without transactions, all of them are stable."""
    return OffsetFetchResponse(
        throttle_time=NO_THROTTLE, groups=tuple(_fetched(coordinator, group) for group in request.groups)
    )


def _answers(
    answer: type[AnswerT],
    topic: OffsetCommitRequestTopic | OffsetDeleteRequestTopic,
    errors: Mapping[TopicPartition, ErrorCode],
) -> tuple[AnswerT, ...]:
    indexes = [partition.partition_index for partition in topic.partitions]
    return tuple(
        answer(partition_index=index, error_code=errors[TopicPartition(topic.name, index)])
        for index in indexes
    )


def _fetched(coordinator: GroupCoordinator, requested: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    wanted = None
    if requested.topics is not None:
        wanted = [
            TopicPartition(topic.name, partition)
            for topic in requested.topics
            for partition in topic.partition_indexes
        ]
    error = ErrorCode.none
    try:
        offsets = coordinator.fetch_offsets(requested.group_id, wanted)
    except ApiError as refused:
        error = refused.code
        # Old versions have an error code for each partition, and none for the group.
        offsets = dict.fromkeys(wanted or (), NO_OFFSET)
    return OffsetFetchResponseGroup(
        group_id=requested.group_id,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=TopicName(topic),
                partitions=tuple(
                    OffsetFetchResponsePartitions(
                        partition_index=i32(index),
                        committed_offset=i64(committed.offset),
                        committed_leader_epoch=i32(committed.leader_epoch),
                        metadata=committed.metadata,
                        error_code=error,
                    )
                    for index, committed in entries
                ),
            )
            for topic, entries in by_topic(offsets.items()).items()
        ),
        error_code=error,
    )
