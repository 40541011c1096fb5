"""Produce: append record batches to the logs that this broker leads."""

from datetime import UTC, datetime, timedelta
from typing import Final, cast

from kio.schema.produce.v12 import ProduceRequest, ProduceResponse
from kio.schema.produce.v12.response import PartitionProduceResponse, TopicProduceResponse
from kio.static.primitive import TZAware, i32, i64

from examples.broker.errors import ApiError, ErrorCode, ProtocolError
from examples.broker.handlers.internal_topics import check_not_internal
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import NO_ACKS, ProduceParams
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.timestamps import NO_TIMESTAMP
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.produce import PartitionProduced, Produced

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


async def produce(
    replicas: ReplicaManager, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | None:
    """Append one batch to each partition, and answer when they are acknowledged; None for acks=0.

    Raises ProtocolError when an append with acks=0 fails.

    A partition that is named twice has the error INVALID_REQUEST, since it has one answer only. Group
    coordinators do not append through this handler, so that clients cannot write to internal topics.
    """
    batches: dict[TopicPartition, RecordBatch] = {}
    refused: Produced = {}
    for topic in request.topic_data:
        for partition in topic.partition_data:
            topic_partition = TopicPartition(topic.name, partition.index)
            try:
                if topic_partition in batches or topic_partition in refused:
                    raise ApiError(ErrorCode.invalid_request, f"{topic_partition} is named twice")
                check_not_internal(topic.name)
                batches[topic_partition] = WireRecordBatch.parse(partition.records or b"")
            except ApiError as error:
                batches.pop(topic_partition, None)
                refused[topic_partition] = PartitionProduced(error.code)
    params = ProduceParams(request.acks, request.timeout.total_seconds())
    produced = refused | await replicas.append(params, batches)
    if request.acks == NO_ACKS:
        for topic_partition, answer in produced.items():
            if answer.error is not ErrorCode.none:
                # Only a closed connection can tell the producer.
                raise ProtocolError(
                    f"acks=0, and {topic_partition} gave {answer.error.name.upper()} to {context.client_id}"
                )
        return None
    return ProduceResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                partition_responses=tuple(
                    _partition_response(
                        partition.index, produced[TopicPartition(topic.name, partition.index)]
                    )
                    for partition in topic.partition_data
                ),
            )
            for topic in request.topic_data
        ),
    )


def _partition_response(index: i32, produced: PartitionProduced) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=produced.error,
        base_offset=cast(i64, produced.base_offset),
        log_append_time=_append_time(produced.log_append_time),
        log_start_offset=cast(i64, produced.log_start_offset),
        record_errors=(),
    )


def _append_time(wall_time: int) -> TZAware | None:
    if wall_time == NO_TIMESTAMP:
        return None
    # TZAware.parse refuses a time that is no whole second. What writes it does not.
    return cast(TZAware, _EPOCH + timedelta(milliseconds=wall_time))
