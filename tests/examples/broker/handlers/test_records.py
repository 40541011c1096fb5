"""Produce and Fetch: requests and responses of clients and followers."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.schema.fetch.v12.response import EpochEndOffset, PartitionData
from kio.schema.produce.v12 import ProduceRequest
from kio.schema.produce.v12.request import PartitionProduceData, TopicProduceData
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from examples.broker.controller.cluster_defaults import OFFSETS_TOPIC
from examples.broker.errors import ApiError
from examples.broker.handlers.fetch_client import RemoteLeader
from examples.broker.handlers.produce import UnacknowledgedFailure
from examples.broker.metadata import PartitionState
from examples.broker.protocol.apis import FETCH, PRODUCE
from examples.broker.replication.fetch import FetchParams, PartitionFetch
from examples.broker.replication.follower import Follower, LogOffsets
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.leader_broker import Cluster, events, image_of
from tests.examples.broker.wire_batches import wire_batch

READ_COMMITTED = 1
EVENTS = TopicName("events")


def produce(
    *records: tuple[int, bytes | None], acks: int = 1, timeout: float = 30, topic: TopicName = EVENTS
) -> ProduceRequest:
    return ProduceRequest(
        acks=i16(acks),
        timeout=i32Timedelta.parse(timedelta(seconds=timeout)),
        topic_data=(
            TopicProduceData(
                name=topic,
                partition_data=tuple(
                    PartitionProduceData(index=i32(index), records=None if data is None else Records(data))
                    for index, data in records
                ),
            ),
        ),
    )


async def produced(cluster: Cluster, request: ProduceRequest) -> list[tuple[int, ErrorCode, int]]:
    response = await Loopback(cluster.broker).request(PRODUCE, request)
    assert [topic.name for topic in response.responses] == [EVENTS]
    answers = response.responses[0].partition_responses
    return [(answer.index, answer.error_code, answer.base_offset) for answer in answers]


def fetch(
    *partitions: FetchPartition,
    replica_id: int = -1,
    max_wait: float = 0,
    min_bytes: int = 1,
    max_bytes: int = 10_000,
    isolation_level: int = 0,
) -> FetchRequest:
    return FetchRequest(
        replica_id=BrokerId(replica_id),
        max_wait=i32Timedelta.parse(timedelta(seconds=max_wait)),
        min_bytes=i32(min_bytes),
        max_bytes=i32(max_bytes),
        isolation_level=i8(isolation_level),
        session_epoch=i32(0),
        topics=(FetchTopic(topic=EVENTS, partitions=partitions),),
        forgotten_topics_data=(),
    )


def at(offset: int, index: int = 0, epoch: int = -1, last_fetched_epoch: int = -1) -> FetchPartition:
    return FetchPartition(
        partition=i32(index),
        fetch_offset=i64(offset),
        current_leader_epoch=i32(epoch),
        last_fetched_epoch=i32(last_fetched_epoch),
        partition_max_bytes=i32(10_000),
    )


def partitions(response: FetchResponse) -> list[PartitionData]:
    assert response.error_code is ErrorCode.none
    return list(response.responses[0].partitions)


async def test_produced_records_are_fetched_at_their_offsets(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    data = wire_batch(b"one", b"two")
    for offset in (0, 2):
        assert await produced(cluster, produce((0, data))) == [(0, ErrorCode.none, offset)]
    (partition,) = partitions(await Loopback(cluster.broker).request(FETCH, fetch(at(1))))
    assert (partition.high_watermark, partition.last_stable_offset, partition.log_start_offset) == (4, 4, 0)
    assert [batch.base_offset for batch in WireRecordBatch.parse_all(partition.records or b"")] == [0, 2]
    assert (
        partition.records
        == WireRecordBatch.parse(data).at(0, 0).data + WireRecordBatch.parse(data).at(2, 0).data
    )


async def test_each_partition_has_its_own_answer(cluster: Cluster) -> None:
    cluster.create(0, 1, replicas=1)
    good = wire_batch(b"one")
    assert await produced(cluster, produce((1, good), (0, good[:-1]), (5, good), (2, None))) == [
        (1, ErrorCode.none, 0),
        (0, ErrorCode.corrupt_message, -1),
        (5, ErrorCode.unknown_topic_or_partition, -1),
        (2, ErrorCode.corrupt_message, -1),
    ]
    one, five = partitions(await Loopback(cluster.broker).request(FETCH, fetch(at(0, 1), at(0, 5))))
    assert (one.error_code, one.records) == (ErrorCode.none, good)
    assert (five.error_code, five.high_watermark) == (ErrorCode.unknown_topic_or_partition, -1)


async def test_a_partition_named_twice_is_refused_and_nothing_is_appended(cluster: Cluster) -> None:
    cluster.create(0, 1, replicas=1)
    good = wire_batch(b"one")
    answers = await produced(cluster, produce((0, good), (1, good), (0, good), (0, good)))
    assert [error for _, error, _ in answers] == [
        ErrorCode.invalid_request,
        ErrorCode.none,
        ErrorCode.invalid_request,
        ErrorCode.invalid_request,
    ]
    assert cluster.partition(events(0)).log.log_end_offset == 0


async def test_clients_cannot_write_to_the_offsets_topic(cluster: Cluster) -> None:
    offsets = TopicPartition(OFFSETS_TOPIC, 0)
    cluster.broker.apply(image_of([PartitionState((0,), (0,), leader=0)], name=OFFSETS_TOPIC), [offsets])
    request = produce((0, wire_batch(b"hello")), topic=TopicName(OFFSETS_TOPIC))
    response = await Loopback(cluster.broker).request(PRODUCE, request)
    (answer,) = response.responses[0].partition_responses
    assert (answer.error_code, answer.base_offset) == (ErrorCode.invalid_topic_exception, -1)
    assert cluster.partition(offsets).log.log_end_offset == 0


async def test_a_produce_without_acks_gets_no_answer_or_a_closed_connection(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    connection = Loopback(cluster.broker)
    assert await connection.answer(PRODUCE, produce((0, wire_batch(b"one")), acks=0)) is None
    assert cluster.partition(events()).log.log_end_offset == 1
    with pytest.raises(UnacknowledgedFailure, match="events-1 gave UNKNOWN_TOPIC_OR_PARTITION to test"):
        await connection.answer(PRODUCE, produce((1, wire_batch(b"one")), acks=0))


async def test_a_produce_waits_for_its_timeout(cluster: Cluster, virtual_time: VirtualTimeLoop) -> None:
    cluster.create(0)
    began = virtual_time.time()
    answers = await produced(cluster, produce((0, wire_batch(b"one")), acks=-1, timeout=1.5))
    assert answers == [(0, ErrorCode.request_timed_out, 0)]
    assert virtual_time.time() - began == pytest.approx(1.5, abs=0.002)


async def test_a_fetch_waits_for_its_max_wait(cluster: Cluster, virtual_time: VirtualTimeLoop) -> None:
    cluster.create(0, replicas=1)
    began = virtual_time.time()
    (partition,) = partitions(await Loopback(cluster.broker).request(FETCH, fetch(at(0), max_wait=0.25)))
    assert partition.records == b""
    assert virtual_time.time() - began == pytest.approx(0.25, abs=0.002)


async def test_a_fetch_does_not_wait_for_more_bytes_than_a_response_may_have(
    cluster: Cluster, virtual_time: VirtualTimeLoop
) -> None:
    cluster.create(0, replicas=1)
    await produced(cluster, produce((0, wire_batch(b"one"))))
    began = virtual_time.time()
    await Loopback(cluster.broker).request(
        FETCH, fetch(at(0), max_wait=10, min_bytes=1_000_000, max_bytes=50)
    )
    assert virtual_time.time() == began


async def test_read_committed_gets_an_empty_list_of_aborted_transactions(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    for level, expected in ((0, None), (READ_COMMITTED, ())):
        response = await Loopback(cluster.broker).request(FETCH, fetch(at(0), isolation_level=level))
        assert partitions(response)[0].aborted_transactions == expected


async def test_a_reader_in_another_epoch_gets_an_error_and_a_diverging_one_the_epoch(
    cluster: Cluster,
) -> None:
    (topic_partition,) = cluster.create(0, replicas=1)
    await produced(cluster, produce((0, wire_batch(b"one"))))
    for _ in range(2):
        cluster.lead_by(topic_partition, 0)
    await produced(cluster, produce((0, wire_batch(b"two"))))
    ask = Loopback(cluster.broker).request
    for epoch, error in ((1, ErrorCode.fenced_leader_epoch), (3, ErrorCode.unknown_leader_epoch)):
        assert partitions(await ask(FETCH, fetch(at(0, epoch=epoch))))[0].error_code is error
    (diverging,) = partitions(await ask(FETCH, fetch(at(2, epoch=2, last_fetched_epoch=1))))
    assert diverging.error_code is ErrorCode.none
    assert diverging.diverging_epoch == EpochEndOffset(epoch=i32(0), end_offset=i64(1))


# The client of Fetch


async def test_a_follower_over_the_protocol_replicates_diverges_and_returns(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0, replicas=2)
    hosted = HostedPartitions(1)
    hosted.apply(cluster.image, [topic_partition], now=0)
    partition = hosted.get(topic_partition)
    assert partition is not None
    follower = Follower(RemoteLeader(Loopback(cluster.broker), 1), hosted, [topic_partition], max_wait=0.1)
    appended = await cluster.start(produced(cluster, produce((0, wire_batch(b"one", b"two")), acks=-1)))
    for _ in range(2):
        await follower.fetch_once()
    assert await appended == [(0, ErrorCode.none, 0)]
    assert list(partition.log.batches()) == list(cluster.partition(topic_partition).log.batches())
    partition.local.append_as_follower([WireRecordBatch.parse(wire_batch(b"lost")).at(2, 1)], 0, 0)
    for _ in range(2):
        cluster.lead_by(topic_partition, 0)
    hosted.apply(cluster.image, [topic_partition], now=0)
    await follower.fetch_once()
    assert partition.log.log_end_offset == 2
    cluster.partition(topic_partition).delete_records(2)
    partition.local.truncate_to(0)
    await follower.fetch_once()
    assert (partition.log.log_start_offset, partition.high_watermark) == (2, 2)


async def test_a_follower_asks_for_its_partitions_topic_by_topic(cluster: Cluster) -> None:
    one, two = cluster.create(0, 1, replicas=2)
    hosted = HostedPartitions(1)
    hosted.apply(cluster.image, [one, two], now=0)
    await produced(cluster, produce((0, wire_batch(b"one")), (1, wire_batch(b"two"))))
    await Follower(RemoteLeader(Loopback(cluster.broker), 1), hosted, [two, one]).fetch_once()
    for topic_partition in (one, two):
        partition = hosted.get(topic_partition)
        assert partition is not None
        assert partition.log.log_end_offset == 1


async def test_a_follower_gets_the_leaders_log_end_offset(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0)
    await produced(cluster, produce((0, wire_batch(b"one"))))
    leader = RemoteLeader(Loopback(cluster.broker), 1)
    assert await leader.offsets(topic_partition, 0) == LogOffsets(0, 1)
    with pytest.raises(ApiError, match="UNKNOWN_LEADER_EPOCH"):
        await leader.offsets(topic_partition, 1)


class Damaging(Loopback):
    """Flips a bit of the records on their way."""

    async def request(self, api, request):  # type: ignore[no-untyped-def]  # as the class above
        response = await super().request(api, request)
        data = response.responses[0].partitions[0]
        object.__setattr__(data, "records", Records(data.records[:-1] + bytes([data.records[-1] ^ 1])))
        return response


async def test_records_damaged_on_the_way_are_not_appended(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0, replicas=2)
    await produced(cluster, produce((0, wire_batch(b"one"))))
    hosted = HostedPartitions(1)
    hosted.apply(cluster.image, [topic_partition], now=0)
    await Follower(RemoteLeader(Damaging(cluster.broker), 1), hosted, [topic_partition]).fetch_once()
    partition = hosted.get(topic_partition)
    assert partition is not None
    assert partition.log.log_end_offset == 0
    await asyncio.sleep(1)
    await Follower(RemoteLeader(Loopback(cluster.broker), 1), hosted, [topic_partition]).fetch_once()
    assert partition.log.log_end_offset == 1


async def test_a_followers_second_fetch_has_only_changes(cluster: Cluster) -> None:
    cluster.create(0, 1)
    follower = RemoteLeader(Loopback(cluster.broker), 1)
    params = FetchParams(replica_id=1, max_wait=0)
    wanted = {events(index): PartitionFetch(0, current_leader_epoch=0) for index in (0, 1)}
    assert (await follower.fetch(params, wanted)).keys() == wanted.keys()
    assert await follower.fetch(params, wanted) == {}
    await cluster.produce(events(1), acks=1)
    news = await follower.fetch(params, wanted)
    assert [(entry, fetched.info.size_in_bytes > 0) for entry, fetched in news.items()] == [(events(1), True)]


async def test_an_unknown_fetch_session_closes_the_connection(cluster: Cluster) -> None:
    cluster.create(0)
    follower = RemoteLeader(Loopback(cluster.broker), 1)
    params = FetchParams(replica_id=1, max_wait=0)
    await follower.fetch(params, {events(): PartitionFetch(0)})
    cluster.broker.fetch_sessions.open(1, {})
    with pytest.raises(ConnectionError, match="FETCH_SESSION_ID_NOT_FOUND"):
        await follower.fetch(params, {events(): PartitionFetch(0)})


@pytest.mark.parametrize(
    ("session_id", "epoch", "error"),
    [(0, 0, ErrorCode.none), (0, -1, ErrorCode.none), (7, 1, ErrorCode.fetch_session_id_not_found)],
)
async def test_consumers_get_no_session(
    cluster: Cluster, session_id: int, epoch: int, error: ErrorCode
) -> None:
    cluster.create(0)
    request = replace(fetch(at(0)), session_id=i32(session_id), session_epoch=i32(epoch))
    response = await Loopback(cluster.broker).request(FETCH, request)
    assert (response.session_id, response.error_code) == (0, error)
