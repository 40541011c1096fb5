"""The client of Fetch, over the bytes of the protocol: replication and fetch sessions."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import FetchResponse
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.static.primitive import Records, i32

from examples.broker.errors import ApiError
from examples.broker.node.remote_leader import RemoteLeader
from examples.broker.protocol.apis import FETCH
from examples.broker.replication.follower_request import FollowerRequest
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_fetcher import LogOffsets, ReplicaFetcher
from examples.broker.replication.requests import FetchParams, PartitionFetch
from examples.broker.storage.wire_batch import WireRecordBatch
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.handlers.record_requests import EVENTS, at, fetch, produce, produced
from tests.examples.broker.leader_broker import Cluster, events
from tests.examples.broker.wire_batches import wire_batch


async def test_a_follower_over_the_protocol_replicates_diverges_and_returns(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0, replicas=2)
    hosted = HostedPartitions(1)
    hosted.apply(cluster.image, [topic_partition], now=0)
    partition = hosted.get(topic_partition)
    assert partition is not None
    follower = ReplicaFetcher(
        RemoteLeader(Loopback(cluster.sessions), 1), hosted, [topic_partition], max_wait=0.1
    )
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
    # The follower looks at its replicas again.
    hosted.apply(cluster.image, [], now=0)
    await follower.fetch_once()
    assert (partition.log.log_start_offset, partition.high_watermark) == (2, 2)


async def test_a_follower_asks_for_its_partitions_topic_by_topic(cluster: Cluster) -> None:
    one, two = cluster.create(0, 1, replicas=2)
    hosted = HostedPartitions(1)
    hosted.apply(cluster.image, [one, two], now=0)
    await produced(cluster, produce((0, wire_batch(b"one")), (1, wire_batch(b"two"))))
    await ReplicaFetcher(RemoteLeader(Loopback(cluster.sessions), 1), hosted, [two, one]).fetch_once()
    for topic_partition in (one, two):
        partition = hosted.get(topic_partition)
        assert partition is not None
        assert partition.log.log_end_offset == 1


async def test_a_follower_gets_the_leaders_log_end_offset(cluster: Cluster) -> None:
    (topic_partition,) = cluster.create(0)
    await produced(cluster, produce((0, wire_batch(b"one"))))
    leader = RemoteLeader(Loopback(cluster.sessions), 1)
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
    await ReplicaFetcher(RemoteLeader(Damaging(cluster.sessions), 1), hosted, [topic_partition]).fetch_once()
    partition = hosted.get(topic_partition)
    assert partition is not None
    assert partition.log.log_end_offset == 0
    await asyncio.sleep(1)
    await ReplicaFetcher(RemoteLeader(Loopback(cluster.sessions), 1), hosted, [topic_partition]).fetch_once()
    assert partition.log.log_end_offset == 1


async def test_a_followers_second_fetch_has_only_changes(cluster: Cluster) -> None:
    cluster.create(0, 1)
    follower = RemoteLeader(Loopback(cluster.sessions), 1)
    params = FetchParams(replica_id=1, max_wait=0)
    wanted = FollowerRequest({events(index): PartitionFetch(0, current_leader_epoch=0) for index in (0, 1)})
    assert (await follower.fetch(params, wanted)).keys() == wanted.keys()
    assert await follower.fetch(params, wanted) == {}
    await cluster.produce(events(1), acks=1)
    news = await follower.fetch(params, wanted)
    assert list(news) == [events(1)]


async def test_an_unknown_fetch_session_closes_the_connection(cluster: Cluster) -> None:
    cluster.create(0)
    follower = RemoteLeader(Loopback(cluster.sessions), 1)
    params = FetchParams(replica_id=1, max_wait=0)
    await follower.fetch(params, FollowerRequest({events(): PartitionFetch(0)}))
    cluster.sessions.open(1, {})
    with pytest.raises(ConnectionError, match="FETCH_SESSION_ID_NOT_FOUND"):
        await follower.fetch(params, FollowerRequest({events(): PartitionFetch(0)}))


class Consumer:
    """A consumer with a fetch session, as Java's client has one."""

    def __init__(self, cluster: Cluster) -> None:
        self._connection = Loopback(cluster.sessions)
        self.session_id = 0

    async def fetch(self, epoch: int, *partitions: FetchPartition, **settings: Any) -> FetchResponse:
        request = replace(
            fetch(*partitions, **settings),
            session_id=i32(self.session_id),
            session_epoch=i32(epoch),
            topics=(FetchTopic(topic=EVENTS, partitions=partitions),) if partitions else (),
        )
        response = await self._connection.request(FETCH, request)
        self.session_id = response.session_id
        return response


def batches(response: FetchResponse) -> list[tuple[int, bool]]:
    """Return the partitions of a response, and whether each has records."""
    assert response.error_code is ErrorCode.none
    return [
        (data.partition_index, bool(data.records))
        for topic in response.responses
        for data in topic.partitions
    ]


async def test_a_consumer_in_a_session_is_told_of_changed_partitions_only(cluster: Cluster) -> None:
    cluster.create(0, 1, replicas=1)
    consumer = Consumer(cluster)
    assert batches(await consumer.fetch(0, at(0), at(0, 1))) == [(0, False), (1, False)]
    assert consumer.session_id
    assert batches(await consumer.fetch(1)) == []
    waiting = await cluster.start(consumer.fetch(2, max_wait=30))
    await cluster.produce(events(1), acks=1)
    assert batches(await waiting) == [(1, True)]
    assert batches(await consumer.fetch(3, at(10, 1))) == []


async def test_a_consumer_closes_its_session(cluster: Cluster) -> None:
    cluster.create(0)
    consumer = Consumer(cluster)
    for last in (0, -1):
        await consumer.fetch(0, at(0))
        (session,) = cluster.sessions.of(events())
        await consumer.fetch(last, at(0))
        assert session not in cluster.sessions.of(events())
    assert consumer.session_id == 0
    assert cluster.sessions.of(events()) == []


async def test_a_fetch_without_a_session_has_no_session_id(cluster: Cluster) -> None:
    cluster.create(0)
    consumer = Consumer(cluster)
    assert batches(await consumer.fetch(-1, at(0))) == [(0, False)]
    assert consumer.session_id == 0


async def test_a_fetch_in_a_session_that_has_gone_on_meanwhile_is_refused(cluster: Cluster) -> None:
    cluster.create(0, replicas=1)
    consumer = Consumer(cluster)
    await consumer.fetch(0, at(0))
    late = await cluster.start(consumer.fetch(1, max_wait=30))
    await consumer.fetch(2)
    await cluster.produce(events(), acks=1)
    assert (await late).error_code is ErrorCode.invalid_fetch_session_epoch
