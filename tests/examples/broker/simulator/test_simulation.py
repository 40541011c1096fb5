"""Whole simulations in virtual time."""

from dataclasses import replace

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import MetadataImage
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.partition import Partition
from examples.broker.replication.replica_fetcher import ReplicaFetcher
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import ALL_ACKS, LEADER_ACK, NO_ACKS
from examples.broker.simulator.report import Report
from examples.broker.simulator.simulation import LEADER_ID, Simulation
from examples.broker.simulator.workload import Workload
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop

SMALL = Workload(rate=2_000, batch=10, record_size=10, partitions=3, duration=1, segment_bytes=1_000)


async def simulate(workload: Workload, virtual_time: VirtualTimeLoop) -> Report:
    async with ReplicaManager.running(HostedPartitions(LEADER_ID)) as broker:
        return await Simulation(workload, broker, virtual_time.time).run()


@pytest.mark.parametrize("acks", [NO_ACKS, LEADER_ACK, ALL_ACKS])
@pytest.mark.parametrize("replicas", [1, 3])
async def test_every_record_offered_is_acknowledged_and_consumed_once_in_order(
    virtual_time: VirtualTimeLoop, acks: int, replicas: int
) -> None:
    report = await simulate(replace(SMALL, acks=acks, replicas=replicas), virtual_time)
    assert report.failure is None
    assert report.drained.acknowledged == report.drained.consumed == report.drained.offered
    assert report.drained.offered == pytest.approx(2_000, abs=SMALL.batch)
    assert report.batches_verified == report.drained.consumed / SMALL.batch
    assert report.keeps_up
    assert report.drained.errors == {}


async def test_the_report_counts_what_waited_and_for_how_long(virtual_time: VirtualTimeLoop) -> None:
    report = await simulate(SMALL, virtual_time)
    batches = report.drained.offered / SMALL.batch
    assert report.under_load.elapsed == pytest.approx(SMALL.duration, abs=0.01)
    assert report.under_load.acknowledged == pytest.approx(2_000, rel=0.01)
    assert 0 < report.drained.produce.completed <= batches
    assert report.drained.produce.waits.count >= report.drained.produce.completed
    assert report.drained.fetch.completed > 0
    assert report.drained.end_to_end.count == batches


@pytest.mark.slow
async def test_records_that_all_have_are_deleted_to_bound_the_memory(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ReplicaManager.running(HostedPartitions(LEADER_ID)) as broker:
        simulation = Simulation(replace(SMALL, duration=10), broker, virtual_time.time)
        await simulation.run()
    for partition in simulation.partitions.values():
        assert partition.high_watermark == partition.log.log_end_offset > 6_000
        assert partition.in_sync_replicas == (0, 1, 2)
        assert partition.log.log_start_offset > partition.log.log_end_offset - 2_000
        assert partition.log.segment_count < 20


async def test_a_consumer_that_waits_for_more_bytes_is_drained(
    virtual_time: VirtualTimeLoop,
) -> None:
    report = await simulate(
        replace(SMALL, min_bytes=1_000_000, max_wait=40, segment_bytes=1 << 20), virtual_time
    )
    assert report.failure is None
    assert report.drained.consumed == report.drained.offered


async def test_a_broker_that_does_not_keep_up_shows_as_a_growing_backlog(
    virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_once = ReplicaFetcher.fetch_once

    async def fetch_slowly(follower: ReplicaFetcher) -> None:
        await virtual_time.create_task(fetch_once(follower))
        waited = virtual_time.create_future()
        virtual_time.call_later(0.2, waited.set_result, None)
        await waited

    monkeypatch.setattr(ReplicaFetcher, "fetch_once", fetch_slowly)
    report = await simulate(replace(SMALL, duration=5), virtual_time)
    assert report.failure is None
    assert not report.keeps_up
    assert report.under_load.backlog.growing
    assert report.under_load.acknowledged < report.under_load.offered


async def test_failed_batches_are_counted_and_not_reported_as_lost(
    virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, calls = Partition.append_as_leader, iter(range(1_000_000))

    def refuse_every_tenth(partition: Partition, batch: RecordBatch, *, acks_all: bool) -> int:
        if next(calls) % 10 == 0:
            raise ApiError(ErrorCode.not_enough_replicas, "now and then")
        return append(partition, batch, acks_all=acks_all)

    monkeypatch.setattr(Partition, "append_as_leader", refuse_every_tenth)
    report = await simulate(SMALL, virtual_time)
    assert report.failure is None
    assert report.drained.errors == {"NOT_ENOUGH_REPLICAS": 20}
    assert report.drained.acknowledged == report.drained.consumed == report.drained.offered - 20 * SMALL.batch


async def test_a_deleted_partition_raises_an_error(virtual_time: VirtualTimeLoop) -> None:
    async with ReplicaManager.running(HostedPartitions(LEADER_ID)) as broker:
        simulation = Simulation(SMALL, broker, virtual_time.time)
        virtual_time.call_later(0.5, broker.apply, MetadataImage(), [TopicPartition("events", 1)])
        with pytest.raises(ExceptionGroup) as raised:
            await simulation.run()
    assert raised.group_contains(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION: consuming events-1")


async def test_a_high_watermark_that_does_not_move_is_detected(
    virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Partition, "maybe_increment_high_watermark", lambda partition, now: False)
    report = await simulate(replace(SMALL, acks=LEADER_ACK), virtual_time)
    assert report.failure is not None
    assert "still not consumed 30.5 s after" in report.failure
