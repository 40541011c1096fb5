"""The follower's loop, in one process with its leader."""

import asyncio

import pytest

from examples.broker.replication.follower import Follower
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.produce import LEADER_ACK
from examples.broker.storage.log import PartitionLog
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.cluster import Cluster


class Replica(Follower):
    """A follower with partitions of its own."""

    def __init__(
        self, cluster: Cluster, *topic_partitions: TopicPartition, replica_id: int = 1, max_wait: float = 0
    ) -> None:
        self.hosted = HostedPartitions(replica_id)
        self.hosted.apply(cluster.image, topic_partitions, now=0)
        super().__init__(cluster.broker, self.hosted, topic_partitions, max_wait=max_wait)

    def log(self, topic_partition: TopicPartition) -> PartitionLog:
        partition = self.hosted.get(topic_partition)
        assert partition is not None
        return partition.log


async def test_what_a_follower_fetches_is_in_its_log_and_its_next_fetch_says_so(cluster: Cluster) -> None:
    (events,) = cluster.create(0, replicas=2)
    await cluster.produce(events, acks=LEADER_ACK)
    replica = Replica(cluster, events)
    await replica.fetch_once()
    assert replica.log(events).log_end_offset == 10
    assert cluster.partition(events).high_watermark == 0
    await replica.fetch_once()
    assert cluster.partition(events).high_watermark == 10


async def test_followers_that_run_complete_produces_with_acks_all(cluster: Cluster) -> None:
    one, two = cluster.create(0, 1)
    replicas = [Replica(cluster, one, two, replica_id=replica_id, max_wait=0.5) for replica_id in (1, 2)]
    running = [asyncio.create_task(replica.run()) for replica in replicas]
    for round_ in range(20):
        response = await cluster.produce(one, two)
        assert [produced.base_offset for produced in response.values()] == [round_ * 10] * 2
    assert {replica.log(entry).log_end_offset for replica in replicas for entry in (one, two)} == {200}
    for task in running:
        task.cancel()
    await asyncio.wait(running)


async def test_a_follower_frees_what_its_leader_has_given_up(cluster: Cluster) -> None:
    (events,) = cluster.create(0, replicas=2)
    replica = Replica(cluster, events)
    for _ in range(15):
        await cluster.produce(events, acks=LEADER_ACK)
        await replica.fetch_once()
    await replica.fetch_once()
    cluster.partition(events).delete_records(120)
    await replica.fetch_once()
    log = replica.log(events)
    assert (log.log_start_offset, log.log_end_offset, log.segment_count) == (120, 150, 1)


async def test_a_follower_past_its_leaders_end_cuts_its_log_there(cluster: Cluster) -> None:
    (events,) = cluster.create(0, replicas=2)
    replica = Replica(cluster, events)
    for _ in range(3):
        await cluster.produce(events, acks=LEADER_ACK)
    await replica.fetch_once()
    cluster.partition(events).local.truncate_to(10)
    await replica.fetch_once()
    assert replica.log(events).log_end_offset == 10
    await replica.fetch_once()
    assert cluster.partition(events).high_watermark == 10


async def test_a_follower_below_its_leaders_start_begins_anew_there(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    for _ in range(3):
        await cluster.produce(events, acks=LEADER_ACK)
    await cluster.replicate({events: 30})
    cluster.partition(events).delete_records(20)
    replica = Replica(cluster, events)
    await replica.fetch_once()
    assert replica.log(events).log_end_offset == 20
    await replica.fetch_once()
    assert (replica.log(events).log_start_offset, replica.log(events).log_end_offset) == (20, 30)
