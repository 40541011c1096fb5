"""Fetch: records from the logs that this broker leads, for consumers and followers."""

from typing import Final, cast

from kio.schema.errors import ErrorCode as WireErrorCode
from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    PartitionData,
)
from kio.schema.types import TopicName
from kio.static.primitive import Records, i32, i64

from examples.broker.errors import ApiError
from examples.broker.handlers.throttle import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.fetch import FetchParams, PartitionFetch, PartitionFetched
from examples.broker.replication.fetch import FetchRequest as PartitionFetches
from examples.broker.replication.fetch import FetchResponse as PartitionResults
from examples.broker.replication.fetch_session import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    FetchSession,
    FetchSessions,
)
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition, by_topic

# Kafka's fetch.max.bytes of a broker: the memory of a response, except for its first batch.
FETCH_MAX_BYTES: Final = 55 << 20
_READ_COMMITTED: Final = 1
_NOT_DIVERGING: Final = EpochEndOffset()


async def fetch(replicas: ReplicaManager, context: RequestContext, request: FetchRequest) -> FetchResponse:
    """Wait for enough bytes, and return whole batches.

    Followers have fetch sessions (KIP-227). Consumers get none: the response has no session id, so that each
    of their requests names all partitions. Without transactions, every committed record is stable.
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
    try:
        session = _session(replicas.fetch_sessions, params, request, wanted)
    except ApiError as refused:
        return _response(WireErrorCode(refused.code), NO_SESSION, {}, None)
    aborted = () if request.isolation_level == _READ_COMMITTED else None
    if session is None:
        return _response(WireErrorCode.none, NO_SESSION, await replicas.fetch(params, wanted), aborted)
    fetched = await replicas.fetch(params, session.partitions)
    return _response(WireErrorCode.none, session.session_id, session.incremental_response(fetched), aborted)


def _session(
    sessions: FetchSessions, params: FetchParams, request: FetchRequest, wanted: PartitionFetches
) -> FetchSession | None:
    """Return the follower's session, updated by its request; None without a session."""
    if request.session_epoch == FINAL_EPOCH:
        return None
    if request.session_epoch == FIRST_EPOCH:
        return sessions.open(params.replica_id, wanted) if params.from_follower else None
    session = sessions.resume(params.replica_id, request.session_id)
    forgotten = [
        TopicPartition(topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    session.update(request.session_epoch, wanted, forgotten)
    return session


def _response(
    error: WireErrorCode,
    session_id: int,
    fetched: PartitionResults,
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
        error_code=WireErrorCode(fetched.error),
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start_offset=cast(i64, fetched.log_start_offset),
        diverging_epoch=_NOT_DIVERGING
        if diverging is None
        else EpochEndOffset(epoch=cast(i32, diverging.epoch), end_offset=cast(i64, diverging.end_offset)),
        aborted_transactions=aborted,
        records=Records(b"".join([batch.data for batch in fetched.batches])),
    )
