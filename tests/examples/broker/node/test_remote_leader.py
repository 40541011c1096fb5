"""The client of Fetch, over the bytes of the protocol: replication and fetch sessions."""

import asyncio
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode
from kio.static.primitive import Records, i32

from examples.broker.errors import ApiError
from examples.broker.node.remote_leader import RemoteLeader
from examples.broker.protocol.apis import FETCH
from examples.broker.replication.fetch import FetchParams, PartitionFetch
from examples.broker.replication.follower import Follower, LogOffsets
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.storage.wire_batch import WireRecordBatch
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.handlers.record_requests import at, fetch, produce, produced
from tests.examples.broker.leader_broker import Cluster, events
from tests.examples.broker.wire_batches import wire_batch


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
