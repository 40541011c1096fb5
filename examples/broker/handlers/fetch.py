"""Fetch: records from the logs that this broker leads, for consumers and followers."""

from typing import Final, cast

from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    PartitionData,
)
from kio.schema.types import TopicName
from kio.static.primitive import Records, i32, i64

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.fetch_sessions import FetchSession, FetchSessions
from examples.broker.replication.follower_request import FINAL_EPOCH, FIRST_EPOCH, NO_SESSION
from examples.broker.replication.requests import (
    Fetched,
    Fetches,
    FetchParams,
    PartitionFetch,
    PartitionFetched,
)
from examples.broker.topic_partition import TopicPartition, by_topic

# Kafka's fetch.max.bytes of a broker: the memory of a response, except for its first batch.
FETCH_MAX_BYTES: Final = 55 << 20
_READ_COMMITTED: Final = 1
_NOT_DIVERGING: Final = EpochEndOffset()


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
            fetched = await sessions.replicas.fetch(params, wanted)
            return _response(ErrorCode.none, NO_SESSION, fetched, aborted)
        fetched = await sessions.fetch(params, session)
    except ApiError as refused:
        return _response(refused.code, NO_SESSION, {}, None)
    return _response(ErrorCode.none, session.session_id, fetched, aborted)


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


def _response(
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
        else EpochEndOffset(epoch=cast(i32, diverging.epoch), end_offset=cast(i64, diverging.end_offset)),
        aborted_transactions=() if fetched.error is ErrorCode.unknown_topic_or_partition else aborted,
        records=Records(b"".join([batch.data for batch in fetched.batches])),
    )
