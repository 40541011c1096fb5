"""Fetches through the replica manager: what may be read, and when a fetch waits."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.metadata import MetadataImage
from examples.broker.replication.requests import LEADER_ACK, Fetched, FetchParams, PartitionFetch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.leader_broker import BATCH_BYTES, Cluster, soon


def offsets(response: Fetched) -> list[list[int]]:
    return [[batch.base_offset for batch in fetched.batches] for fetched in response.values()]


def errors(response: Fetched) -> list[ErrorCode]:
    return [fetched.error for fetched in response.values()]


async def commit(cluster: Cluster, topic_partition: TopicPartition, batches: int = 1) -> None:
    """Append a batch, and let both followers replicate it."""
    for _ in range(batches):
        await cluster.produce(topic_partition, acks=LEADER_ACK)
    await cluster.replicate({topic_partition: cluster.partition(topic_partition).log.log_end_offset})


async def test_a_fetch_that_can_be_answered_never_parks(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    await commit(cluster, events)
    await cluster.consume({events: 0}, min_bytes=BATCH_BYTES)
    await cluster.consume({events: 10}, max_wait=0)
    await cluster.consume({})
    assert cluster.broker.fetch_purgatory.statistics().completed == 0
    assert cluster.pending == 0


async def test_an_append_alone_completes_followers_and_not_consumers(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    follower = await cluster.start(cluster.follow(1, {events: 0}, max_wait=30))
    consumer = await cluster.start(cluster.consume({events: 0}))
    assert cluster.pending == 2
    await cluster.produce(events, acks=LEADER_ACK)
    assert offsets(await soon(follower)) == [[0]]
    assert cluster.pending == 1
    await cluster.replicate({events: 10})
    assert offsets(await soon(consumer)) == [[0]]


async def test_a_followers_fetch_moves_the_high_watermark_before_it_waits_itself(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    produce = await cluster.start(cluster.produce(events))
    await cluster.follow(1, {events: 10})
    last = await cluster.start(cluster.follow(2, {events: 10}, max_wait=30))
    assert (await produce)[events].error is ErrorCode.none
    assert cluster.pending == 1
    last.cancel()


async def test_each_partition_counts_up_to_its_own_limit(cluster: Cluster) -> None:
    one, two = cluster.create(0, 1)
    fetch = await cluster.start(
        cluster.consume({one: 0, two: 0}, min_bytes=2 * BATCH_BYTES, most=BATCH_BYTES)
    )
    await commit(cluster, one, 5)
    assert cluster.pending == 1, "five batches of which one is wanted count as one"
    await commit(cluster, two)
    assert offsets(await soon(fetch)) == [[0], [0]]


async def test_at_the_timeout_a_fetch_is_answered_with_what_there_is(
    cluster: Cluster, virtual_time: VirtualTimeLoop
) -> None:
    one, two = cluster.create(0, 1)
    began = virtual_time.time()
    fetch = await cluster.start(cluster.consume({one: 0, two: 0}, min_bytes=1_000, max_wait=0.5))
    await commit(cluster, two)
    assert offsets(await soon(fetch)) == [[], [0]]
    assert virtual_time.time() - began == pytest.approx(0.5, abs=0.002)
    assert cluster.broker.fetch_purgatory.statistics().expired == 1


async def test_a_fetch_counts_the_bytes_of_all_segments_and_reads_one(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    await commit(cluster, events, 9)
    fetch = await cluster.start(cluster.consume({events: 80}, min_bytes=4 * BATCH_BYTES))
    await commit(cluster, events, 2)
    assert cluster.partition(events).log.segment_count == 2
    assert cluster.pending == 1
    await commit(cluster, events)
    assert offsets(await soon(fetch)) == [[80, 90]]


async def test_a_fetch_completes_when_the_log_is_truncated_to_an_older_segment(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    await commit(cluster, events, 11)
    fetch = await cluster.start(cluster.follow(1, {events: 110}, max_wait=30))
    assert cluster.pending == 1
    cluster.partition(events).local.truncate_to(50)
    assert cluster.broker.fetch_purgatory.check_and_complete(events) == 1
    assert errors(await soon(fetch)) == [ErrorCode.offset_out_of_range]


async def test_a_fetch_past_the_high_watermark_waits_for_it(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    await cluster.produce(events, acks=LEADER_ACK)
    fetch = await cluster.start(cluster.consume({events: 5}))
    assert cluster.pending == 1
    await cluster.replicate({events: 10})
    assert offsets(await soon(fetch)) == [[0]]


@pytest.mark.parametrize("offset", [-1, 11])
async def test_a_fetch_out_of_range_is_answered_at_once(cluster: Cluster, offset: int) -> None:
    events, fine = cluster.create(0, 1)
    await commit(cluster, events)
    response = await cluster.consume({events: offset, fine: 0})
    assert errors(response) == [ErrorCode.offset_out_of_range, ErrorCode.none]
    assert (response[events].high_watermark, response[events].batches) == (-1, ())


@pytest.mark.parametrize(
    ("change", "epoch", "error"),
    [
        (lambda cluster, entry: cluster.lead_by(entry, 0), 0, ErrorCode.fenced_leader_epoch),
        (lambda cluster, entry: cluster.lead_by(entry, 1), -1, ErrorCode.not_leader_or_follower),
        (lambda cluster, entry: cluster.delete(entry), -1, ErrorCode.not_leader_or_follower),
        (
            lambda cluster, entry: cluster.broker.apply(MetadataImage(), [entry]),
            -1,
            ErrorCode.unknown_topic_or_partition,
        ),
    ],
    ids=["another epoch", "another leader", "moved away", "deleted"],
)
async def test_a_pending_fetch_is_answered_when_this_broker_no_longer_leads_in_its_epoch(
    cluster: Cluster, change: Callable[[Cluster, TopicPartition], None], epoch: int, error: ErrorCode
) -> None:
    events, fine = cluster.create(0, 1)
    wanted = {events: PartitionFetch(0, current_leader_epoch=epoch), fine: PartitionFetch(0)}
    fetch = await cluster.start(cluster.broker.fetch(FetchParams(max_wait=30), wanted))
    change(cluster, events)
    assert errors(await soon(fetch)) == [error, ErrorCode.none]


async def test_a_broker_that_holds_no_replica_is_not_served_as_a_follower(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    assert errors(await cluster.follow(7, {events: 0}, max_wait=30)) == [ErrorCode.not_leader_or_follower]


@pytest.mark.parametrize(
    ("max_bytes", "expected"), [(1, [[0], []]), (79, [[0], []]), (80, [[0], [0]]), (1_000, [[0], [0]])]
)
async def test_a_whole_response_is_bounded_except_for_its_first_batch(
    cluster: Cluster, max_bytes: int, expected: list[list[int]]
) -> None:
    one, two = cluster.create(0, 1)
    for topic_partition in (one, two):
        await commit(cluster, topic_partition)
    request: Mapping[TopicPartition, PartitionFetch] = {one: PartitionFetch(0), two: PartitionFetch(0)}
    assert offsets(await cluster.broker.fetch(FetchParams(max_bytes=max_bytes), request)) == expected


async def test_many_fetches_that_wait_wake_nobody_and_are_answered_together(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    fetches = [await cluster.start(cluster.consume({events: 0}, max_wait=3_600)) for _ in range(200)]
    figures = cluster.broker.fetch_purgatory.statistics
    began = figures().wakeups
    await asyncio.sleep(60)
    assert figures().wakeups <= began + 1
    await commit(cluster, events)
    for fetch in fetches:
        assert offsets(await soon(fetch)) == [[0]]
