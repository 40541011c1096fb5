"""Deletions through the replica manager: which replicas they wait for."""

from collections.abc import AsyncIterator

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import LEADER_ACK, FetchParams, PartitionFetch
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.delete_records import PartitionDeleted
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.leader_broker import Cluster

DEAD = {2}


@pytest.fixture
async def cluster(virtual_time: VirtualTimeLoop) -> AsyncIterator[Cluster]:
    """Broker 2 is not live."""
    async with ReplicaManager.running(
        HostedPartitions(0, is_alive=lambda broker_id: broker_id not in DEAD)
    ) as broker:
        yield Cluster(broker)


async def commit(cluster: Cluster, *topic_partitions: TopicPartition, batches: int = 2) -> None:
    for _ in range(batches):
        await cluster.produce(*topic_partitions, acks=LEADER_ACK)
    await cluster.replicate(dict.fromkeys(topic_partitions, batches * 10))


async def tell_log_start(cluster: Cluster, replica_id: int, starts: dict[TopicPartition, int]) -> None:
    """Fetch as a follower that has all records, with this log start offset."""
    await cluster.broker.fetch(
        FetchParams(replica_id, max_wait=0),
        {
            entry: PartitionFetch(cluster.partition(entry).log.log_end_offset, log_start_offset=start)
            for entry, start in starts.items()
        },
    )


async def test_a_deletion_waits_for_the_log_start_offset_of_every_live_follower(
    cluster: Cluster,
) -> None:
    (events,) = cluster.create(0)
    await commit(cluster, events)
    deletion = await cluster.start(cluster.broker.delete_records(30, {events: 15}))
    assert cluster.partition(events).log.log_start_offset == 15
    assert cluster.pending == 1
    await tell_log_start(cluster, 1, {events: 10})
    assert cluster.pending == 1
    await tell_log_start(cluster, 1, {events: 15})
    assert await deletion == {events: PartitionDeleted(ErrorCode.none, 15)}


@pytest.mark.parametrize("offset", [-2, 11])
async def test_an_offset_that_is_not_committed_is_out_of_range(cluster: Cluster, offset: int) -> None:
    (events,) = cluster.create(0)
    await commit(cluster, events, batches=1)
    await cluster.produce(events, acks=LEADER_ACK)
    unknown = TopicPartition("unknown", 0)
    assert await cluster.broker.delete_records(30, {events: offset, unknown: 0}) == {
        events: PartitionDeleted(ErrorCode.offset_out_of_range),
        unknown: PartitionDeleted(ErrorCode.unknown_topic_or_partition),
    }
    assert cluster.partition(events).log.log_start_offset == 0


async def test_at_the_timeout_pending_partitions_time_out_and_others_keep_their_answer(
    cluster: Cluster, virtual_time: VirtualTimeLoop
) -> None:
    done, slow = cluster.create(0, 1)
    await commit(cluster, done, slow)
    began = virtual_time.time()
    deletion = await cluster.start(cluster.broker.delete_records(30, {done: 10, slow: 10}))
    await tell_log_start(cluster, 1, {done: 10, slow: 9})
    assert await deletion == {
        done: PartitionDeleted(ErrorCode.none, 10),
        slow: PartitionDeleted(ErrorCode.request_timed_out),
    }
    assert virtual_time.time() - began == pytest.approx(30, abs=0.002)


async def test_a_pending_deletion_is_answered_when_its_partition_has_another_leader(cluster: Cluster) -> None:
    moved, gone = cluster.create(0, 1)
    await commit(cluster, moved, gone)
    deletion = await cluster.start(cluster.broker.delete_records(30, {moved: 10, gone: 10}))
    cluster.lead_by(moved, 1)
    cluster.delete(gone)
    assert await deletion == {
        moved: PartitionDeleted(ErrorCode.not_leader_or_follower),
        gone: PartitionDeleted(ErrorCode.not_leader_or_follower),
    }


async def test_a_deletion_no_longer_waits_for_a_follower_that_dies(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (events,) = cluster.create(0)
    await commit(cluster, events)
    deletion = await cluster.start(cluster.broker.delete_records(30, {events: 10}))
    monkeypatch.setattr(f"{__name__}.DEAD", {1, 2})
    cluster.broker.apply(cluster.image, [])
    assert await deletion == {events: PartitionDeleted(ErrorCode.none, 10)}
