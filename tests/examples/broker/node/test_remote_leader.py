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
from examples.broker.replication.partition import Partition
from examples.broker.replication.replica_fetcher import LogOffsets, ReplicaFetcher
from examples.broker.replication.requests import FetchParams, PartitionFetch
from examples.broker.storage.wire_batch import WireRecordBatch
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.handlers.record_requests import EVENTS, at, fetch, produce, produced
from tests.examples.broker.leader_broker import Cluster, events
from tests.examples.broker.wire_batches import wire_batch


class Follower:
    """Broker 1, which follows partitions of broker 0 over the protocol."""

    def __init__(self, cluster: Cluster, *partitions: int) -> None:
        self._cluster = cluster
        self._followed = cluster.create(*partitions, replicas=2)
        self.hosted = HostedPartitions(1)
        self.look_at_the_image()
        self.fetcher = self.connected_by(Loopback)

    def look_at_the_image(self) -> None:
        self.hosted.apply(self._cluster.image, self._followed, now=0)

    def connected_by(self, connection: type[Loopback]) -> ReplicaFetcher:
        leader = RemoteLeader(connection(self._cluster.sessions), 1)
        return ReplicaFetcher(leader, self.hosted, self._followed[::-1], max_wait=0.1)

    def partition(self, index: int) -> Partition:
        partition = self.hosted.get(events(index))
        assert partition is not None
        return partition


async def test_a_follower_over_the_protocol_replicates_diverges_and_returns(cluster: Cluster) -> None:
    follower = Follower(cluster, 0, 1)
    partition, leader = follower.partition(0), cluster.partition(events())
    batches = (0, wire_batch(b"one", b"two")), (1, wire_batch(b"three"))
    appended = await cluster.start(produced(cluster, produce(*batches, acks=-1)))
    for _ in range(2):
        await follower.fetcher.fetch_once()
    assert await appended == [(0, ErrorCode.none, 0), (1, ErrorCode.none, 0)]
    assert list(partition.log.batches()) == list(leader.log.batches())
    assert follower.partition(1).log.log_end_offset == 1
    partition.local.append_as_follower([WireRecordBatch.parse(wire_batch(b"lost")).at(2, 1)], 0, 0)
    for _ in range(2):
        cluster.lead_by(events(), 0)
    follower.look_at_the_image()
    await follower.fetcher.fetch_once()
    assert partition.log.log_end_offset == 2
    leader.delete_records(2)
    partition.local.truncate_to(0)
    follower.look_at_the_image()
    await follower.fetcher.fetch_once()
    assert (partition.log.log_start_offset, partition.high_watermark) == (2, 2)


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
    follower = Follower(cluster, 0)
    await produced(cluster, produce((0, wire_batch(b"one"))))
    await follower.connected_by(Damaging).fetch_once()
    assert follower.partition(0).log.log_end_offset == 0
    await asyncio.sleep(1)
    await follower.connected_by(Loopback).fetch_once()
    assert follower.partition(0).log.log_end_offset == 1


async def test_a_followers_second_fetch_has_only_changes_until_its_session_is_lost(cluster: Cluster) -> None:
    cluster.create(0, 1)
    follower = RemoteLeader(Loopback(cluster.sessions), 1)
    params = FetchParams(replica_id=1, max_wait=0)
    wanted = FollowerRequest({events(index): PartitionFetch(0, current_leader_epoch=0) for index in (0, 1)})
    assert (await follower.fetch(params, wanted)).keys() == wanted.keys()
    assert await follower.fetch(params, wanted) == {}
    await cluster.produce(events(1), acks=1)
    assert list(await follower.fetch(params, wanted)) == [events(1)]
    cluster.sessions.open(1, {})
    with pytest.raises(ConnectionError, match="FETCH_SESSION_ID_NOT_FOUND"):
        await follower.fetch(params, wanted)


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
        response: FetchResponse = await self._connection.request(FETCH, request)
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


async def test_a_consumer_closes_its_session_or_has_none(cluster: Cluster) -> None:
    cluster.create(0)
    consumer = Consumer(cluster)
    for last in (0, -1):
        await consumer.fetch(0, at(0))
        (session,) = cluster.sessions.of(events())
        await consumer.fetch(last, at(0))
        assert session not in cluster.sessions.of(events())
    assert cluster.sessions.of(events()) == []
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
