"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords: requests and responses."""

from datetime import timedelta

import pytest
from kio.schema.delete_records.v2 import DeleteRecordsRequest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsTopic
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v9 import ListOffsetsRequest
from kio.schema.list_offsets.v9.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochRequest
from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderPartition, OffsetForLeaderTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.handlers.reads import list_offsets
from examples.broker.metadata import PartitionState
from examples.broker.protocol.apis import DELETE_RECORDS, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH
from examples.broker.protocol.codec import RequestContext
from examples.broker.replication.requests import LEADER_ACK, ProduceParams
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.leader_broker import Cluster, events, image_of
from tests.examples.broker.wire_batches import wire_batch

EVENTS = TopicName("events")
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


async def append(cluster: Cluster, *timestamps: int) -> None:
    batch = WireRecordBatch.parse(wire_batch(*(b"x" for _ in timestamps), timestamps=timestamps))
    await cluster.broker.append(ProduceParams(LEADER_ACK), {events(): batch})


async def offset(
    cluster: Cluster, timestamp: int, *, index: int = 0, epoch: int = -1, replica_id: int = -1
) -> tuple[ErrorCode, int, int, int]:
    partition = ListOffsetsPartition(
        partition_index=i32(index), current_leader_epoch=i32(epoch), timestamp=i64(timestamp)
    )
    response = await Loopback(cluster.sessions).request(
        LIST_OFFSETS,
        ListOffsetsRequest(
            replica_id=BrokerId(replica_id),
            isolation_level=i8(0),
            topics=(ListOffsetsTopic(name=EVENTS, partitions=(partition,)),),
        ),
    )
    answer = response.topics[0].partitions[0]
    assert (response.topics[0].name, answer.partition_index) == (EVENTS, index)
    return answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch


async def test_offsets_are_found_by_time_and_at_both_ends(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    await append(cluster, 1_000, 3_000, 2_000)
    await append(cluster, 2_500)
    assert await offset(cluster, 0) == (ErrorCode.none, 0, 1_000, 0)
    assert await offset(cluster, 1_001) == (ErrorCode.none, 1, 3_000, 0)
    assert await offset(cluster, 3_001) == (ErrorCode.none, -1, -1, -1)
    assert await offset(cluster, LATEST) == (ErrorCode.none, 4, -1, 0)
    assert await offset(cluster, MAX_TIMESTAMP) == (ErrorCode.none, 1, 3_000, 0)
    for timestamp in (EARLIEST, EARLIEST_LOCAL):
        assert await offset(cluster, timestamp) == (ErrorCode.none, 0, -1, 0)
    assert await offset(cluster, LATEST_TIERED) == (ErrorCode.none, -1, -1, -1)


async def test_a_deleted_record_is_not_found_by_its_time(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    await append(cluster, 1_000, 2_000, 3_000)
    cluster.partition(events()).log.increment_log_start_offset(1)
    assert await offset(cluster, 0) == (ErrorCode.none, 1, 2_000, 0)


@pytest.mark.parametrize(("timestamp", "known_from"), [(-3, 7), (-4, 8), (-5, 9), (-6, 10)])
async def test_a_special_time_is_served_from_its_version_on(
    cluster: Cluster, timestamp: int, known_from: int
) -> None:
    cluster.create(0, replicas=1)
    partition = ListOffsetsPartition(partition_index=i32(0), timestamp=i64(timestamp))
    topics = (ListOffsetsTopic(name=EVENTS, partitions=(partition,)),)
    request = ListOffsetsRequest(replica_id=BrokerId(-1), isolation_level=i8(0), topics=topics)
    errors = []
    for version in (known_from - 1, known_from):
        context = RequestContext(LIST_OFFSETS, version, 1, None, "here")
        response = await list_offsets(cluster.broker, context, request)
        errors.append(response.topics[0].partitions[0].error_code)
    refused = ErrorCode.unsupported_version
    assert errors == [refused, ErrorCode.none if known_from <= LIST_OFFSETS.max_version else refused]


async def test_an_offset_has_the_leader_epoch_of_its_record(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0, replicas=1)
    await append(cluster, 1_000)
    cluster.lead_by(topic_partition, 0)
    await append(cluster, 2_000)
    assert [await offset(cluster, timestamp) for timestamp in (1_000, 2_000, LATEST)] == [
        (ErrorCode.none, 0, 1_000, 0),
        (ErrorCode.none, 1, 2_000, 1),
        (ErrorCode.none, 2, -1, 1),
    ]


async def test_followers_get_the_log_end_offset_and_consumers_the_high_watermark(cluster: Cluster) -> None:
    cluster.create(0)
    await append(cluster, 1_000)
    assert (await offset(cluster, LATEST))[1] == 0
    assert (await offset(cluster, LATEST, replica_id=1))[1] == 1


async def test_an_unavailable_offset_is_the_error_of_its_partition(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0)
    await append(cluster, 1_000)
    cluster.lead_by(topic_partition, 0)
    nothing = (-1, -1, -1)
    assert await offset(cluster, LATEST, index=5) == (ErrorCode.unknown_topic_or_partition, *nothing)
    assert await offset(cluster, LATEST, epoch=0) == (ErrorCode.fenced_leader_epoch, *nothing)
    assert await offset(cluster, LATEST, epoch=2) == (ErrorCode.unknown_leader_epoch, *nothing)
    assert await offset(cluster, LATEST) == (ErrorCode.offset_not_available, *nothing)


@pytest.mark.parametrize(
    ("version", "error"), [(4, ErrorCode.leader_not_available), (5, ErrorCode.offset_not_available)]
)
async def test_an_old_client_gets_a_retriable_error_that_it_knows(
    cluster: Cluster, version: int, error: ErrorCode
) -> None:
    (topic_partition,) = cluster.create(0)
    await append(cluster, 1_000)
    cluster.lead_by(topic_partition, 0)
    partition = ListOffsetsPartition(partition_index=i32(0), timestamp=i64(LATEST))
    topics = (ListOffsetsTopic(name=EVENTS, partitions=(partition,)),)
    response = await list_offsets(
        cluster.broker,
        RequestContext(LIST_OFFSETS, version, 1, "test", "127.0.0.1"),
        ListOffsetsRequest(replica_id=BrokerId(-1), isolation_level=i8(0), topics=topics),
    )
    assert [answer.error_code for answer in response.topics[0].partitions] == [error]


async def epoch_end(cluster: Cluster, leader_epoch: int, *, current: int = -1) -> tuple[ErrorCode, int, int]:
    partition = OffsetForLeaderPartition(
        partition=i32(0), current_leader_epoch=i32(current), leader_epoch=i32(leader_epoch)
    )
    response = await Loopback(cluster.sessions).request(
        OFFSET_FOR_LEADER_EPOCH,
        OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=EVENTS, partitions=(partition,)),)),
    )
    answer = response.topics[0].partitions[0]
    assert (response.topics[0].topic, answer.partition) == (EVENTS, 0)
    return answer.error_code, answer.leader_epoch, answer.end_offset


async def test_the_end_of_an_epoch_is_where_the_next_leader_began(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0, replicas=1)
    await append(cluster, 1_000, 2_000)
    for _ in range(3):
        cluster.lead_by(topic_partition, 0)
    await append(cluster, 3_000)
    assert await epoch_end(cluster, 0) == (ErrorCode.none, 0, 2)
    assert await epoch_end(cluster, 2) == (ErrorCode.none, 0, 2)
    assert await epoch_end(cluster, 3) == (ErrorCode.none, 3, 3)
    assert await epoch_end(cluster, 4) == (ErrorCode.none, -1, -1)
    assert await epoch_end(cluster, 0, current=3) == (ErrorCode.none, 0, 2)
    assert await epoch_end(cluster, 0, current=2) == (ErrorCode.fenced_leader_epoch, -1, -1)


async def delete(
    cluster: Cluster, offsets: dict[int, int], timeout: float, *, topic: TopicName = EVENTS
) -> list[tuple[int, int, ErrorCode]]:
    response = await Loopback(cluster.sessions).request(
        DELETE_RECORDS,
        DeleteRecordsRequest(
            timeout=i32Timedelta.parse(timedelta(seconds=timeout)),
            topics=(
                DeleteRecordsTopic(
                    name=topic,
                    partitions=tuple(
                        DeleteRecordsPartition(partition_index=i32(index), offset=i64(offset))
                        for index, offset in offsets.items()
                    ),
                ),
            ),
        ),
    )
    assert [entry.name for entry in response.topics] == [topic]
    return [
        (result.partition_index, result.low_watermark, result.error_code)
        for result in response.topics[0].partitions
    ]


async def test_deleted_records_are_gone_and_each_partition_has_its_low_watermark(
    cluster: Cluster,
) -> None:
    cluster.create(0, replicas=1)
    await append(cluster, 1_000, 2_000, 3_000)
    assert await delete(cluster, {0: 2, 5: 0}, 30) == [
        (0, 2, ErrorCode.none),
        (5, -1, ErrorCode.unknown_topic_or_partition),
    ]
    assert await delete(cluster, {0: -1}, 30) == [(0, 3, ErrorCode.none)]
    assert await delete(cluster, {0: 4}, 30) == [(0, -1, ErrorCode.offset_out_of_range)]


async def test_no_client_deletes_from_the_offsets_topic(cluster: Cluster) -> None:
    offsets = TopicPartition(OFFSETS_TOPIC, 0)
    cluster.broker.apply(image_of([PartitionState((0,), (0,), leader=0)], name=OFFSETS_TOPIC), [offsets])
    batch = WireRecordBatch.parse(wire_batch(b"a commit"))
    await cluster.broker.append(ProduceParams(LEADER_ACK), {offsets: batch})
    deleted = await delete(cluster, {0: -1}, 30, topic=TopicName(OFFSETS_TOPIC))
    assert deleted == [(0, -1, ErrorCode.invalid_topic_exception)]
    assert cluster.partition(offsets).log.log_start_offset == 0


async def test_a_deletion_waits_for_its_timeout(cluster: Cluster, virtual_time: VirtualTimeLoop) -> None:
    cluster.create(0)
    began = virtual_time.time()
    assert await delete(cluster, {0: 0}, 1.5) == [(0, -1, ErrorCode.request_timed_out)]
    assert virtual_time.time() - began == pytest.approx(1.5, abs=0.002)
