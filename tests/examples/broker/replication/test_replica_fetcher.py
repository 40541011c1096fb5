"""The replica fetcher, in one process with its leader."""

import asyncio

import pytest

from examples.broker.metadata import PartitionState, TopicConfig
from examples.broker.node.remote_leader import RemoteLeader
from examples.broker.replication.follower_request import FollowerRequest
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_fetcher import BACKOFF, LogOffsets, ReplicaFetcher
from examples.broker.replication.requests import (
    LEADER_ACK,
    Fetched,
    FetchParams,
    PartitionFetch,
    ProduceParams,
)
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.handlers.loopback_connection import Loopback
from tests.examples.broker.leader_broker import Cluster, events, image_of
from tests.examples.broker.wire_batches import wire_batch


class Replica(ReplicaFetcher):
    """Return a follower with its own partitions."""

    def __init__(
        self, cluster: Cluster, *topic_partitions: TopicPartition, replica_id: int = 1, max_wait: float = 0
    ) -> None:
        self.hosted = HostedPartitions(replica_id)
        self.hosted.apply(cluster.image, topic_partitions, now=0)
        super().__init__(cluster.broker, self.hosted, topic_partitions, max_wait=max_wait)

    def learn(self, cluster: Cluster, topic_partition: TopicPartition) -> None:
        self.hosted.apply(cluster.image, [topic_partition], now=0)

    def log(self, topic_partition: TopicPartition) -> PartitionLog:
        partition = self.hosted.get(topic_partition)
        assert partition is not None
        return partition.log


@pytest.mark.parametrize("in_session", [False, True])
async def test_a_busy_partition_does_not_block_a_large_batch_of_another(
    cluster: Cluster, in_session: bool
) -> None:
    busy, large = events(0), events(1)
    limit = PartitionFetch(0).max_bytes
    image = image_of([PartitionState((0, 1), (0, 1), leader=0)] * 2, TopicConfig(max_message_bytes=2 * limit))
    cluster.broker.apply(image, [busy, large])
    hosted = HostedPartitions(1)
    hosted.apply(image, [busy, large], now=0)
    leader = RemoteLeader(Loopback(cluster.sessions), 1) if in_session else cluster.broker
    follower = ReplicaFetcher(leader, hosted, [busy, large], max_wait=0)
    await cluster.broker.append(
        ProduceParams(LEADER_ACK), {large: WireRecordBatch.parse(wire_batch(b"x" * (limit + 1)))}
    )
    for _ in range(3):
        await cluster.broker.append(
            ProduceParams(LEADER_ACK), {busy: WireRecordBatch.parse(wire_batch(b"x"))}
        )
        await follower.fetch_once()
    replicas = [hosted.get(topic_partition) for topic_partition in (busy, large)]
    assert [replica.log.log_end_offset for replica in replicas if replica is not None] == [3, 1]


async def test_a_refused_partition_is_left_out_for_the_backoff_and_the_others_go_on(
    cluster: Cluster, virtual_time: VirtualTimeLoop
) -> None:
    refused, fine = cluster.create(0, 1)
    replica = Replica(cluster, refused, fine, max_wait=30)
    cluster.lead_by(refused, 0)
    await cluster.produce(refused, fine, acks=LEADER_ACK)
    await replica.fetch_once()
    assert (replica.log(refused).log_end_offset, replica.log(fine).log_end_offset) == (0, 10)
    waiting = await cluster.start(replica.fetch_once())
    assert cluster.broker.fetch_purgatory.statistics().pending == 1, "the refused one is not asked for again"
    waiting.cancel()
    replica.learn(cluster, refused)
    await asyncio.sleep(BACKOFF)
    await replica.fetch_once()
    assert replica.log(refused).log_end_offset == 10


async def test_a_follower_with_nothing_to_fetch_waits_a_little(
    cluster: Cluster, virtual_time: VirtualTimeLoop
) -> None:
    (events,) = cluster.create(0, replicas=2)
    replica = Replica(cluster, events, replica_id=0)
    began = virtual_time.time()
    await replica.fetch_once()
    assert virtual_time.time() - began == pytest.approx(BACKOFF)


class SlowLeader:
    """A leader that answers when ``answer`` is set."""

    def __init__(self, cluster: Cluster) -> None:
        self.broker = cluster.broker
        self.may_answer = asyncio.Event()

    async def fetch(self, params: FetchParams, request: FollowerRequest) -> Fetched:
        response = await self.broker.fetch(params, request)
        await self.may_answer.wait()
        return response

    async def offsets(self, topic_partition: TopicPartition, leader_epoch: int) -> LogOffsets:
        await self.may_answer.wait()
        return await self.broker.offsets(topic_partition, leader_epoch)


@pytest.mark.parametrize(("meanwhile", "end"), [("another leader", 0), ("another response", 10)])
async def test_a_response_after_a_change_of_the_replica_is_ignored(
    cluster: Cluster, meanwhile: str, end: int
) -> None:
    (events,) = cluster.create(0, replicas=2)
    await cluster.produce(events, acks=LEADER_ACK)
    replica, leader = Replica(cluster, events), SlowLeader(cluster)
    late = ReplicaFetcher(leader, replica.hosted, [events], max_wait=0)
    fetch = await cluster.start(late.fetch_once())
    if meanwhile == "another leader":
        cluster.lead_by(events, 1)
        replica.learn(cluster, events)
    else:
        await replica.fetch_once()
    leader.may_answer.set()
    await fetch
    assert replica.log(events).log_end_offset == end
