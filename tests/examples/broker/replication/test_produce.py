"""Appends through the replica manager: what each value of acks waits for."""

import asyncio

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.replication.requests import LEADER_ACK, NO_ACKS
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.produce import PartitionProduced, Produced
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.leader_broker import Cluster

UNKNOWN = TopicPartition("unknown", 0)


def errors(response: Produced) -> list[ErrorCode]:
    return [produced.error for produced in response.values()]


@pytest.mark.parametrize("acks", [NO_ACKS, LEADER_ACK])
async def test_a_produce_with_acks_0_or_1_waits_for_no_follower(cluster: Cluster, acks: int) -> None:
    (events,) = cluster.create(0)
    assert await cluster.produce(events, acks=acks) == {events: PartitionProduced(ErrorCode.none, 0, 0)}
    assert await cluster.produce(events, acks=acks) == {events: PartitionProduced(ErrorCode.none, 10, 0)}
    assert cluster.partition(events).high_watermark == 0


async def test_a_produce_with_acks_all_waits_for_the_slowest_in_sync_replica(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    produce = await cluster.start(cluster.produce(events))
    await cluster.follow(1, {events: 10})
    assert cluster.pending == 1
    await cluster.follow(2, {events: 10})
    assert cluster.pending == 0
    assert await produce == {events: PartitionProduced(ErrorCode.none, 0, 0)}


async def test_each_partition_of_a_produce_has_its_own_required_offset(cluster: Cluster) -> None:
    one, two = cluster.create(0, 1)
    await cluster.produce(two, acks=LEADER_ACK)
    produce = await cluster.start(cluster.produce(one, two))
    await cluster.replicate({one: 10, two: 10})
    assert cluster.pending == 1, "ten records reach the end of the batch in one partition, not in the other"
    await cluster.replicate({two: 20})
    assert await produce == {
        one: PartitionProduced(ErrorCode.none, 0, 0),
        two: PartitionProduced(ErrorCode.none, 10, 0),
    }


async def test_produces_complete_together_when_the_high_watermark_passes_them(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    produces = [await cluster.start(cluster.produce(events)) for _ in range(5)]
    await cluster.replicate({events: 30})
    assert cluster.pending == 2
    await cluster.replicate({events: 50})
    responses = await asyncio.gather(*produces)
    assert [response[events].base_offset for response in responses] == [0, 10, 20, 30, 40]


async def test_at_the_timeout_pending_partitions_time_out_and_others_keep_their_answer(
    cluster: Cluster, virtual_time: VirtualTimeLoop
) -> None:
    done, slow = cluster.create(0, 1)
    began = virtual_time.time()
    produce = await cluster.start(cluster.produce(done, slow, UNKNOWN, within=30))
    await cluster.replicate({done: 10})
    assert await produce == {
        done: PartitionProduced(ErrorCode.none, 0, 0),
        slow: PartitionProduced(ErrorCode.request_timed_out, 0, 0),
        UNKNOWN: PartitionProduced(ErrorCode.unknown_topic_or_partition),
    }
    assert virtual_time.time() - began == pytest.approx(30, abs=0.002)
    assert cluster.broker.produce_purgatory.statistics().expired == 1


async def test_a_produce_with_timeout_0_times_out_at_once(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    assert errors(await cluster.produce(events, within=0)) == [ErrorCode.request_timed_out]
    assert cluster.partition(events).log.log_end_offset == 10, "timed out is not undone"


@pytest.mark.parametrize("acks", [-2, 2])
async def test_acks_other_than_0_1_and_all_are_refused_and_nothing_is_appended(
    cluster: Cluster, acks: int
) -> None:
    (events,) = cluster.create(0)
    assert errors(await cluster.produce(events, acks=acks)) == [ErrorCode.invalid_required_acks]
    assert cluster.partition(events).log.log_end_offset == 0


async def test_a_produce_is_refused_below_min_insync_replicas(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    await cluster.produce(events, acks=LEADER_ACK)
    await asyncio.sleep(10.5)
    cluster.broker.maybe_shrink_isr()
    assert cluster.partition(events).in_sync_replicas == (0,)
    assert errors(await cluster.produce(events)) == [ErrorCode.not_enough_replicas]


async def test_a_produce_completes_when_the_follower_it_waits_for_is_dropped(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    produce = await cluster.start(cluster.produce(events))
    await cluster.follow(1, {events: 10})
    await asyncio.sleep(10.5)
    assert cluster.pending == 1
    cluster.broker.maybe_shrink_isr()
    assert errors(await produce) == [ErrorCode.none]
    assert cluster.partition(events).in_sync_replicas == (0, 1)


@pytest.mark.parametrize("replica_stays", [True, False])
async def test_a_pending_produce_is_answered_when_its_partition_has_another_leader(
    cluster: Cluster, replica_stays: bool
) -> None:
    gone, kept = cluster.create(0, 1)
    produce = await cluster.start(cluster.produce(gone, kept))
    if replica_stays:
        cluster.lead_by(gone, 1)
    else:
        cluster.delete(gone)
    assert cluster.pending == 1
    await cluster.replicate({kept: 10})
    assert errors(await produce) == [ErrorCode.not_leader_or_follower, ErrorCode.none]
