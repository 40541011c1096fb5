"""The follower's loop, in one process with its leader."""

import asyncio

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.follower import Follower
from examples.broker.replication.produce import LEADER_ACK
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.cluster import CONFIG, Cluster


def follower(cluster: Cluster, *topic_partitions: TopicPartition, replica_id: int = 1) -> Follower:
    return Follower(replica_id, cluster.broker, topic_partitions, CONFIG, max_wait=0)


async def test_what_a_follower_fetches_is_in_its_log_and_its_next_fetch_says_so(cluster: Cluster) -> None:
    (events,) = cluster.create(0, replicas=2)
    await cluster.produce(events, acks=LEADER_ACK)
    replica = follower(cluster, events)
    await replica.fetch_once()
    assert replica.logs[events].log_end_offset == 10
    assert cluster.partition(events).high_watermark == 0
    await replica.fetch_once()
    assert cluster.partition(events).high_watermark == 10


async def test_followers_that_run_complete_produces_with_acks_all(cluster: Cluster) -> None:
    one, two = cluster.create(0, 1)
    replicas = [Follower(replica_id, cluster.broker, [one, two], CONFIG) for replica_id in (1, 2)]
    running = [asyncio.create_task(replica.run()) for replica in replicas]
    for round_ in range(20):
        response = await cluster.produce(one, two)
        assert [produced.base_offset for produced in response.values()] == [round_ * 10] * 2
    assert {log.log_end_offset for replica in replicas for log in replica.logs.values()} == {200}
    for task in running:
        task.cancel()
    await asyncio.wait(running)


async def test_a_follower_frees_what_its_leader_has_given_up(cluster: Cluster) -> None:
    (events,) = cluster.create(0, replicas=2)
    replica = follower(cluster, events)
    for _ in range(15):
        await cluster.produce(events, acks=LEADER_ACK)
        await replica.fetch_once()
    await replica.fetch_once()
    cluster.partition(events).delete_records(120)
    await replica.fetch_once()
    log = replica.logs[events]
    assert (log.log_start_offset, log.log_end_offset, log.segment_count) == (120, 150, 1)


async def test_a_follower_past_its_leaders_end_cuts_its_log_there(cluster: Cluster) -> None:
    (events,) = cluster.create(0, replicas=2)
    replica = follower(cluster, events)
    for _ in range(3):
        await cluster.produce(events, acks=LEADER_ACK)
    await replica.fetch_once()
    cluster.partition(events).truncate_to(10)
    await replica.fetch_once()
    assert replica.logs[events].log_end_offset == 10
    await replica.fetch_once()
    assert cluster.partition(events).high_watermark == 10


async def test_a_follower_below_its_leaders_start_begins_anew_there(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    for _ in range(3):
        await cluster.produce(events, acks=LEADER_ACK)
    await cluster.replicate({events: 30})
    cluster.partition(events).delete_records(20)
    replica = follower(cluster, events)
    await replica.fetch_once()
    assert replica.logs[events].log_end_offset == 20
    await replica.fetch_once()
    assert (replica.logs[events].log_start_offset, replica.logs[events].log_end_offset) == (20, 30)


async def test_a_follower_whose_leader_refuses_it_says_so(cluster: Cluster) -> None:
    (events,) = cluster.create(0, replicas=2)
    with pytest.raises(ApiError, match="following events-0 from 0") as refused:
        await follower(cluster, events, replica_id=7).fetch_once()
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
