"""The partitions of a broker as the metadata changes, and its answers when a purgatory refuses."""

from collections import Counter
from collections.abc import Hashable
from typing import Any
from uuid import UUID

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import MetadataImage, PartitionState, TopicImage
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_fetcher import LogOffsets
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import LEADER_ACK, FetchParams, PartitionFetch
from examples.broker.storage.replica import Disk
from examples.broker.topic_partition import TopicPartition
from examples.broker.waits.delete_records import PartitionDeleted
from examples.broker.waits.produce import PartitionProduced
from purgatory import DelayedOperation
from purgatory.observer import Timing
from tests.examples.broker.leader_broker import Cluster, events, image_of

EVENTS = events()
LED_HERE = PartitionState((0, 1), (0, 1), leader=0)

pytestmark = pytest.mark.usefixtures("virtual_time")


def hosted(disk: Disk, image: MetadataImage) -> HostedPartitions:
    partitions = HostedPartitions(0, disk=disk)
    partitions.apply(image, [EVENTS], now=0)
    return partitions


async def test_a_leader_returns_its_log_offsets_in_its_own_epoch_only(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    await cluster.produce(events, acks=LEADER_ACK)
    cluster.lead_by(events, 0)
    assert await cluster.broker.offsets(events, 1) == LogOffsets(0, 10)
    for current in (0, 2):
        with pytest.raises(ApiError, match="LEADER_EPOCH"):
            await cluster.broker.offsets(events, current)


MOVED = PartitionState((1, 2), (1, 2), leader=1, leader_epoch=1, partition_epoch=1)


@pytest.mark.parametrize("image", [image_of([MOVED]), MetadataImage()], ids=["moved", "deleted"])
async def test_a_partition_is_hosted_while_this_broker_is_one_of_its_replicas(image: MetadataImage) -> None:
    disk = Disk()
    partitions = hosted(disk, image_of([LED_HERE]))
    partitions.apply(MetadataImage(), [], now=0)
    assert [partition.topic_partition for partition in partitions.led()] == [EVENTS], "it has not changed"
    partitions.apply(image, [EVENTS], now=0)
    assert partitions.get(EVENTS) is None
    assert not disk.topic_partitions


async def test_a_restarted_broker_continues_with_the_logs_on_its_disk() -> None:
    disk = Disk()
    log = hosted(disk, image_of([LED_HERE])).leader(EVENTS).log
    assert hosted(disk, image_of([LED_HERE])).leader(EVENTS).log is log


async def test_topics_deleted_while_a_broker_was_down_are_freed_at_its_start() -> None:
    disk = Disk()
    log = hosted(disk, image_of([LED_HERE])).leader(EVENTS).log
    gone, replaced = TopicPartition("gone", 0), TopicPartition("replaced", 0)
    for topic_partition, number in ((gone, 7), (replaced, 8)):
        disk.open(topic_partition, UUID(int=number), 100)
    elsewhere = TopicImage("replaced", UUID(int=9), (PartitionState((1,), (1,), leader=1),))
    topics = {**image_of([LED_HERE]).topics, "replaced": elsewhere}
    assert hosted(disk, MetadataImage(topics=topics)).leader(EVENTS).log is log
    assert disk.topic_partitions == {EVENTS}


async def test_a_new_topic_of_the_same_name_starts_with_an_empty_log() -> None:
    disk = Disk()
    image, again = image_of([LED_HERE.led_by(0)]), image_of([LED_HERE], topic_id=UUID(int=2))
    partitions = hosted(disk, image)
    log = partitions.leader(EVENTS).log
    partitions.apply(again, [EVENTS], now=0)
    assert partitions.leader(EVENTS).log is not log
    assert partitions.leader(EVENTS).leader_epoch == 0
    assert hosted(disk, image).leader(EVENTS).log is not log


class Checks:
    """Count the checks of each purgatory."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()

    def operation_finished(
        self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
    ) -> None: ...

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        self.tried[purgatory] += tried


async def test_a_followers_log_start_offset_checks_deletions_and_no_fetches() -> None:
    checks = Checks()
    async with ReplicaManager.running(HostedPartitions(0), observers=[checks]) as broker:
        cluster = Cluster(broker)
        partitions = cluster.create(*range(5))
        fetch = await cluster.start(cluster.follow(1, dict.fromkeys(partitions, 0), max_wait=30))
        deletion = await cluster.start(broker.delete_records(30, {partitions[0]: 0}))
        checks.tried.clear()
        starts = dict.fromkeys(partitions, PartitionFetch(0, log_start_offset=0))
        await broker.fetch(FetchParams(2, max_wait=0), starts)
        assert checks.tried == {"delete records": 1}
        checks.tried.clear()
        await broker.fetch(FetchParams(2, max_wait=0), starts)
        assert not checks.tried, "this one has moved nothing"
        fetch.cancel()
        deletion.cancel()


async def test_an_append_that_moves_the_high_watermark_checks_a_waiting_fetch_once() -> None:
    checks = Checks()
    async with ReplicaManager.running(HostedPartitions(0), observers=[checks]) as broker:
        cluster = Cluster(broker)
        (events,) = cluster.create(0, replicas=1)
        fetch = await cluster.start(cluster.consume({events: 0}, min_bytes=1000))
        checks.tried.clear()
        await cluster.produce(events)
        assert checks.tried == Counter(fetch=1)
        fetch.cancel()


async def test_an_operation_that_comes_too_late_is_answered_as_timed_out() -> None:
    """The broker stops: its purgatories are closed, and its connections are not yet."""
    async with ReplicaManager.running(HostedPartitions(0)) as broker:
        cluster = Cluster(broker)
        (events,) = cluster.create(0)
    assert await cluster.produce(events) == {
        events: PartitionProduced(ErrorCode.request_timed_out, base_offset=0, log_start_offset=0)
    }
    fetched = (await cluster.consume({events: 0}))[events]
    assert (fetched.error, fetched.batches) == (ErrorCode.none, ())
    await cluster.replicate({events: 10})
    assert await broker.delete_records(30, {events: 5}) == {
        events: PartitionDeleted(ErrorCode.request_timed_out)
    }
    assert cluster.partition(events).high_watermark == 10
