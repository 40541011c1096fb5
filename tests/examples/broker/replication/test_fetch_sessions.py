"""The sessions of a broker: who has one, and for how long."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.replication.fetch_sessions import EVICTION, MAX_SESSIONS, FetchSession
from examples.broker.replication.follower_request import epoch_after
from examples.broker.replication.requests import (
    CONSUMER,
    LEADER_ACK,
    FetchParams,
    PartitionFetch,
    PartitionFetched,
)
from examples.broker.storage.leader_epochs import EpochEndOffset
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.leader_broker import CONFIG, Cluster, image_of

ONE, OTHER = TopicPartition("events", 0), TopicPartition("events", 1)
RECORDS = (RecordBatch(1, b"x"),)
A_BATCH_A_SEGMENT = replace(CONFIG, segment_bytes=1, retention_bytes=0)


def opened(cluster: Cluster, reader: int, *topic_partitions: TopicPartition) -> FetchSession:
    session = cluster.sessions.open(reader, dict.fromkeys(topic_partitions, PartitionFetch(0)))
    assert session is not None
    return session


def is_open(cluster: Cluster, session: FetchSession) -> bool:
    """Send a session's next request; return whether the session is there."""
    try:
        cluster.sessions.resume(session.replica_id, session.session_id, session.epoch + 1, {}, ())
    except ApiError as error:
        return error.code is not ErrorCode.fetch_session_id_not_found
    return True


async def test_a_follower_has_one_session_the_latest(cluster: Cluster) -> None:
    earlier, later = (opened(cluster, 2, ONE) for _ in range(2))
    assert not is_open(cluster, earlier)
    assert is_open(cluster, later)
    assert cluster.sessions.of(ONE) == [later]


async def test_consumers_have_sessions_of_their_own(cluster: Cluster) -> None:
    one, two = (opened(cluster, CONSUMER, ONE) for _ in range(2))
    assert is_open(cluster, one)
    assert is_open(cluster, two)
    cluster.sessions.close(CONSUMER, one.session_id)
    assert not is_open(cluster, one)
    assert cluster.sessions.of(ONE) == [two]


async def test_a_reader_cannot_use_the_session_of_another_one(cluster: Cluster) -> None:
    session = opened(cluster, 2, ONE)
    for reader in (3, CONSUMER):
        cluster.sessions.close(reader, session.session_id)
        with pytest.raises(ApiError) as refused:
            cluster.sessions.resume(reader, session.session_id, 1, {}, ())
        assert refused.value.code is ErrorCode.fetch_session_id_not_found
    assert is_open(cluster, session)


def quiet(mark: int = 5, start: int = 0) -> PartitionFetched:
    return PartitionFetched(ErrorCode.none, mark, start)


@pytest.mark.parametrize(
    "news",
    [
        PartitionFetched(ErrorCode.none, 5, 0, RECORDS),
        quiet(mark=6),
        quiet(start=1),
        PartitionFetched(ErrorCode.not_leader_or_follower),
        PartitionFetched(ErrorCode.none, 5, 0, diverging_epoch=EpochEndOffset(1, 3)),
    ],
    ids=["records", "high watermark", "log start", "error", "divergence"],
)
def test_later_responses_have_only_changed_partitions(news: PartitionFetched) -> None:
    session = FetchSession(7, 1, dict.fromkeys([ONE, OTHER], PartitionFetch(0)), now=0)
    session.incremental_response({ONE: quiet(), OTHER: quiet()})
    assert session.incremental_response({ONE: quiet(), OTHER: quiet()}) == {}
    assert session.incremental_response({ONE: quiet(), OTHER: news}) == {OTHER: news}


def test_a_partition_that_had_records_is_read_after_the_others() -> None:
    session = FetchSession(7, 1, dict.fromkeys([ONE, OTHER], PartitionFetch(0)), now=0)
    records = PartitionFetched(ErrorCode.none, 5, 0, RECORDS)
    for had_records, quiet_one in ((ONE, OTHER), (OTHER, ONE), (ONE, OTHER)):
        session.incremental_response({had_records: records, quiet_one: quiet()})
        assert list(session.unread) == [quiet_one, had_records]
        session.update(epoch_after(session.epoch), {had_records: PartitionFetch(1)}, [])
        assert list(session.unread) == [quiet_one, had_records]


@pytest.mark.parametrize("epoch", [0, 2, -1, 7])
async def test_a_request_with_a_wrong_epoch_changes_nothing(cluster: Cluster, epoch: int) -> None:
    session = opened(cluster, 2, ONE)
    used = session.last_used
    await asyncio.sleep(9)
    with pytest.raises(ApiError, match="INVALID_FETCH_SESSION_EPOCH"):
        cluster.sessions.resume(2, session.session_id, epoch, {OTHER: PartitionFetch(0)}, [ONE])
    assert cluster.sessions.of(ONE) == [session]
    assert (cluster.sessions.of(OTHER), session.last_used) == ([], used)


async def test_a_follower_gets_the_place_of_the_session_that_is_unused_for_longest(cluster: Cluster) -> None:
    first, second, *_ = [opened(cluster, CONSUMER) for _ in range(MAX_SESSIONS)]
    assert is_open(cluster, first)
    follower = opened(cluster, 2)
    assert not is_open(cluster, second)
    assert is_open(cluster, first)
    assert is_open(cluster, follower)


async def test_a_consumer_gets_a_place_only_when_another_session_is_unused(cluster: Cluster) -> None:
    first, *_ = [opened(cluster, CONSUMER) for _ in range(MAX_SESSIONS)]
    await asyncio.sleep(EVICTION - 0.1)
    assert cluster.sessions.open(CONSUMER, {}) is None
    assert is_open(cluster, first)
    await asyncio.sleep(0.1)
    assert cluster.sessions.open(CONSUMER, {}) is not None
    assert is_open(cluster, first)


async def append(cluster: Cluster) -> None:
    await cluster.produce(ONE, acks=LEADER_ACK)


async def move_the_high_watermark(cluster: Cluster) -> None:
    await cluster.follow(2, {ONE: 20})


async def delete_records(cluster: Cluster) -> None:
    await cluster.broker.delete_records(0, {ONE: 5})


async def delete_old_segments(cluster: Cluster) -> None:
    cluster.broker.delete_old_segments()


async def lead_in_a_new_epoch(cluster: Cluster) -> None:
    cluster.lead_by(ONE, 0)


async def lead_no_longer(cluster: Cluster) -> None:
    cluster.lead_by(ONE, 1)


async def host_no_longer(cluster: Cluster) -> None:
    cluster.delete(ONE)


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (append, 0),
        (move_the_high_watermark, 30),
        (delete_records, 30),
        (delete_old_segments, 30),
        (lead_in_a_new_epoch, 0),
        (lead_no_longer, 0),
        (host_no_longer, 0),
    ],
)
async def test_a_waiting_fetch_tells_each_change_of_a_partition_that_was_set_aside(
    cluster: Cluster,
    virtual_time: VirtualTimeLoop,
    change: Callable[[Cluster], Coroutine[Any, Any, None]],
    after: float,
) -> None:
    """The answer comes at once when there are records or an error, and else at the timeout."""
    cluster.create(0, 1)
    cluster.broker.apply(image_of(cluster.states, A_BATCH_A_SEGMENT), [ONE])
    for _ in range(2):
        await append(cluster)
    await cluster.follow(2, {ONE: 10})
    wanted = {ONE: PartitionFetch(20, current_leader_epoch=0), OTHER: PartitionFetch(0)}
    session = cluster.sessions.open(1, wanted)
    assert session is not None
    # The first fetch moves the high watermark.
    for news in ({ONE, OTHER}, {ONE}):
        assert (await cluster.sessions.fetch(FetchParams(1, max_wait=0), session)).keys() == news
    assert session.unread == {}
    fetch = await cluster.start(cluster.sessions.fetch(FetchParams(1, max_wait=30), session))
    figures = cluster.broker.fetch_purgatory.statistics()
    assert (figures.pending, figures.keys) == (1, 1), "it watches its session, and not each partition"
    began = virtual_time.time()
    await change(cluster)
    assert (await fetch).keys() == {ONE}
    assert virtual_time.time() - began == pytest.approx(after, abs=0.002)


async def test_the_fetches_of_a_session_count_for_the_partitions_that_they_do_not_read(
    cluster: Cluster,
) -> None:
    cluster.create(0, replicas=2)
    session = opened(cluster, 1, ONE)
    for seconds in (0, 100):
        await asyncio.sleep(seconds)
        await cluster.sessions.fetch(FetchParams(1, max_wait=0), session)
        assert is_open(cluster, session)
    assert session.unread == {}
    await asyncio.sleep(5)
    await append(cluster)
    in_sync: list[tuple[int, ...]] = []
    for pause in (5, 0.1):
        await asyncio.sleep(pause)
        cluster.broker.maybe_shrink_isr()
        in_sync.append(cluster.partition(ONE).in_sync_replicas)
    assert in_sync == [(0, 1), (0,)]
