"""Fetch: records out of the logs led here, for consumers and followers."""

from typing import Final, cast

from kio.schema.errors import ErrorCode as WireErrorCode
from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    PartitionData,
)
from kio.static.primitive import Records, i32, i64

from examples.broker.handlers.throttle import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.fetch import FetchParams, PartitionFetch, PartitionFetched
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition

# Kafka's fetch.max.bytes of a broker: what an answer takes of memory, but for one batch.
FETCH_MAX_BYTES: Final = 55 << 20
_READ_COMMITTED: Final = 1
_NOT_DIVERGING: Final = EpochEndOffset()


async def fetch(replicas: ReplicaManager, context: RequestContext, request: FetchRequest) -> FetchResponse:
    """Wait for enough bytes, and answer whole batches.

    Fetch sessions (KIP-227) are declined by not giving one an id: every request names all its partitions.
    There are no transactions, so that whatever is committed is stable, too.
    """
    max_bytes = min(request.max_bytes, FETCH_MAX_BYTES)
    params = FetchParams(
        request.replica_id,
        request.max_wait.total_seconds(),
        # More could not be answered, and would always wait out its time.
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
    fetched = await replicas.fetch(params, wanted)
    aborted = () if request.isolation_level == _READ_COMMITTED else None
    return FetchResponse(
        throttle_time=NO_THROTTLE,
        error_code=WireErrorCode.none,
        responses=tuple(
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=tuple(
                    _partition_data(
                        entry.partition, fetched[TopicPartition(topic.topic, entry.partition)], aborted
                    )
                    for entry in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _partition_data(
    partition: i32, fetched: PartitionFetched, aborted: tuple[AbortedTransaction, ...] | None
) -> PartitionData:
    # Cast, since these are in range: kio's constructors, which see to that, take 1.3 us for each field of
    # each partition, and a follower's fetch names every partition that it follows.
    high_watermark = cast(i64, fetched.high_watermark)
    diverging = fetched.diverging_epoch
    return PartitionData(
        partition_index=partition,
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
