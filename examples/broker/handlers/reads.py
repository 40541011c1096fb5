"""Fetch, ListOffsets and OffsetForLeaderEpoch: the requests that read logs."""

from typing import Final, cast

from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.response import AbortedTransaction, FetchableTopicResponse, PartitionData
from kio.schema.fetch.v12.response import EpochEndOffset as DivergingEpoch
from kio.schema.list_offsets.v9 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.list_offsets.v9.request import ListOffsetsPartition
from kio.schema.list_offsets.v9.response import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderPartition
from kio.schema.offset_for_leader_epoch.v4.response import EpochEndOffset, OffsetForLeaderTopicResult
from kio.schema.types import TopicName
from kio.static.primitive import Records, i32, i64

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.fetch_sessions import FetchSession, FetchSessions
from examples.broker.replication.follower_request import FINAL_EPOCH, FIRST_EPOCH, NO_SESSION
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import (
    Fetched,
    Fetches,
    FetchParams,
    PartitionFetch,
    PartitionFetched,
)
from examples.broker.storage.record_batch import (
    EARLIEST_LOCAL_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    MAX_TIMESTAMP,
)
from examples.broker.topic_partition import TopicPartition, by_topic

# Kafka's fetch.max.bytes of a broker: the memory of a response, except for its first batch.
FETCH_MAX_BYTES: Final = 55 << 20
_READ_COMMITTED: Final = 1
_NOT_DIVERGING: Final = DivergingEpoch()

KNOWS_OFFSET_NOT_AVAILABLE: Final = 5
"""From this version of ListOffsets on, clients know OFFSET_NOT_AVAILABLE (KIP-207)."""

_KNOWN_FROM: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL_TIMESTAMP: 8, LATEST_TIERED_TIMESTAMP: 9}
"""The special timestamps that not every version has, and the first version that has each."""


async def fetch(sessions: FetchSessions, context: RequestContext, request: FetchRequest) -> FetchResponse:
    """Wait for enough bytes, and return whole batches.

    Followers and consumers that ask for one have a fetch session (KIP-227). Without transactions, every
    committed record is stable.
    """
    max_bytes = min(request.max_bytes, FETCH_MAX_BYTES)
    params = FetchParams(
        request.replica_id,
        request.max_wait.total_seconds(),
        # A response never has more than max_bytes, so a fetch that waits for more would always time out.
        min(request.min_bytes, max_bytes),
        max_bytes,
    )
    wanted = {
        TopicPartition(topic.topic, partition.partition): PartitionFetch(
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
            partition.log_start_offset,
        )
        for topic in request.topics
        for partition in topic.partitions
    }
    aborted = () if request.isolation_level == _READ_COMMITTED else None
    try:
        session = _session(sessions, request, wanted)
        if session is None:
            return _fetched(
                ErrorCode.none, NO_SESSION, await sessions.replicas.fetch(params, wanted), aborted
            )
        fetched = await sessions.fetch(params, session)
    except ApiError as refused:
        return _fetched(refused.code, NO_SESSION, {}, None)
    return _fetched(ErrorCode.none, session.session_id, fetched, aborted)


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
                    _listed(replicas, topic.name, partition, request.replica_id, context.version)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


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
                    _epoch_end(replicas, topic.topic, partition) for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _session(sessions: FetchSessions, request: FetchRequest, wanted: Fetches) -> FetchSession | None:
    """Return the reader's session, updated by its request; None without a session, or without partitions."""
    if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
        sessions.close(request.replica_id, request.session_id)
    if request.session_epoch == FINAL_EPOCH:
        return None
    if request.session_epoch == FIRST_EPOCH:
        return sessions.open(request.replica_id, wanted)
    forgotten = [
        TopicPartition(topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    session = sessions.resume(
        request.replica_id, request.session_id, request.session_epoch, wanted, forgotten
    )
    if not session.partitions:
        sessions.close(request.replica_id, request.session_id)
        return None
    return session


def _fetched(
    error: ErrorCode,
    session_id: int,
    fetched: Fetched,
    aborted: tuple[AbortedTransaction, ...] | None,
) -> FetchResponse:
    return FetchResponse(
        throttle_time=NO_THROTTLE,
        error_code=error,
        session_id=i32(session_id),
        responses=tuple(
            FetchableTopicResponse(
                topic=TopicName(topic),
                partitions=tuple(_partition_data(index, answer, aborted) for index, answer in answers),
            )
            for topic, answers in by_topic(fetched.items()).items()
        ),
    )


def _partition_data(
    partition: int, fetched: PartitionFetched, aborted: tuple[AbortedTransaction, ...] | None
) -> PartitionData:
    # The values are in range, so cast them. kio's constructors check the range in 1.3 us for each field of
    # each partition, and a follower's fetch names every partition that it follows.
    high_watermark = cast(i64, fetched.high_watermark)
    diverging = fetched.diverging_epoch
    return PartitionData(
        partition_index=cast(i32, partition),
        error_code=fetched.error,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start_offset=cast(i64, fetched.log_start_offset),
        diverging_epoch=_NOT_DIVERGING
        if diverging is None
        else DivergingEpoch(epoch=cast(i32, diverging.epoch), end_offset=cast(i64, diverging.end_offset)),
        aborted_transactions=() if fetched.error is ErrorCode.unknown_topic_or_partition else aborted,
        records=Records(b"".join([batch.data for batch in fetched.batches])),
    )


def _listed(
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


def _epoch_end(replicas: ReplicaManager, topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
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
