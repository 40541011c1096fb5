"""InitProducerId, Produce and DeleteRecords: the requests that change logs."""

from datetime import UTC, datetime, timedelta
from typing import Final, cast

from kio.schema.delete_records.v2 import DeleteRecordsRequest, DeleteRecordsResponse
from kio.schema.delete_records.v2.response import DeleteRecordsPartitionResult, DeleteRecordsTopicResult
from kio.schema.init_producer_id.v4 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.produce.v12 import ProduceRequest, ProduceResponse
from kio.schema.produce.v12.response import PartitionProduceResponse, TopicProduceResponse
from kio.schema.types import ProducerId
from kio.static.primitive import TZAware, i16, i32, i64

from examples.broker.controller.controller import Controller
from examples.broker.errors import ApiError, ErrorCode, ProtocolError
from examples.broker.handlers.refusals import check_not_internal, refused_transactions
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import NO_ACKS, ProduceParams
from examples.broker.storage.record_batch import NO_TIMESTAMP, RecordBatch
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.delete_records import Deleted, PartitionDeleted
from examples.broker.waits.produce import PartitionProduced, Produced

NO_PRODUCER_ID, NO_PRODUCER_EPOCH = -1, -1
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


async def init_producer_id(
    controller: Controller, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Return a new producer id in epoch 0.

    The error is TRANSACTIONAL_ID_AUTHORIZATION_FAILED for a transactional producer, and INVALID_REQUEST for
    an epoch without an id or the reverse.

    A producer that has an id and asks for its next epoch (KIP-360) gets a new id, too. Kafka does the same
    for a producer without transactions, since nothing is fenced by its epochs.
    """
    try:
        if request.transactional_id is not None:
            raise refused_transactions(context, request.transactional_id)
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
            raise ApiError(ErrorCode.invalid_request, "a producer epoch belongs to a producer id")
        return _initialized(ErrorCode.none, controller.next_producer_id(), 0)
    except ApiError as error:
        return _initialized(error.code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


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
                    _produced(partition.index, produced[TopicPartition(topic.name, partition.index)])
                    for partition in topic.partition_data
                ),
            )
            for topic in request.topic_data
        ),
    )


async def delete_records(
    replicas: ReplicaManager, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Delete the records below the given offsets, and answer when no live replica has them any more."""
    offsets: dict[TopicPartition, int] = {}
    refused: Deleted = {}
    for topic in request.topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            try:
                check_not_internal(topic.name)
                offsets[topic_partition] = partition.offset
            except ApiError as error:
                refused[topic_partition] = PartitionDeleted(error.code)
    deleted = refused | await replicas.delete_records(request.timeout.total_seconds(), offsets)
    return DeleteRecordsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    _deleted(
                        partition.partition_index,
                        deleted[TopicPartition(topic.name, partition.partition_index)],
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _initialized(error: ErrorCode, producer_id: int, epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=error,
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(epoch),
    )


def _produced(index: i32, produced: PartitionProduced) -> PartitionProduceResponse:
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


def _deleted(index: i32, deleted: PartitionDeleted) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index,
        low_watermark=i64(deleted.low_watermark),
        error_code=deleted.error,
    )
