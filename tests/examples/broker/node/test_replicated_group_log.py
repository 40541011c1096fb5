"""The log of a group coordinator, and its trims, which keep a takeover short."""

import asyncio
from collections.abc import Iterable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ErrorCode
from examples.broker.group.group_log import SLICE, Record
from examples.broker.metadata import PartitionState
from examples.broker.node import replicated_group_log
from examples.broker.node.replicated_group_log import COMMIT_TIMEOUT, TRIM_INTERVAL, ReplicatedGroupLog
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import FetchParams, PartitionFetch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.leader_broker import TOPIC_ID, Cluster, image_of

OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)


def log_of(replicas: ReplicaManager, *replica_ids: int, topic_id: UUID = TOPIC_ID) -> ReplicatedGroupLog:
    """Return the log of a coordinator that leads the only partition. It is trimmed however small it is."""
    state = PartitionState((0, *replica_ids), (0, *replica_ids), leader=0)
    replicas.apply(image_of([state], topic_id=topic_id, name=OFFSETS_TOPIC), [OFFSETS])
    return ReplicatedGroupLog(replicas, partitions=1, smallest_trimmed=1)


def lead_by(cluster: Cluster, leader: int, *, topic_id: UUID = TOPIC_ID) -> None:
    """Let another broker lead the partition, or the same one in a new leader epoch."""
    known = cluster.broker.partitions.get(OFFSETS)
    assert known is not None
    state = known.state.led_by(leader)
    cluster.broker.apply(image_of([state], topic_id=topic_id, name=OFFSETS_TOPIC), [OFFSETS])


def start_offset(cluster: Cluster) -> int:
    return cluster.partition(OFFSETS).log.log_start_offset


def end_offset(cluster: Cluster) -> int:
    return cluster.partition(OFFSETS).log.log_end_offset


async def replicate(cluster: Cluster) -> None:
    """Let the follower acknowledge all that the log has."""
    await cluster.broker.fetch(FetchParams(1, max_wait=0), {OFFSETS: PartitionFetch(end_offset(cluster))})


async def append(cluster: Cluster, log: ReplicatedGroupLog, *records: Record) -> None:
    appending = await cluster.start(log.append(0, records))
    await replicate(cluster)
    assert await appending is ErrorCode.none


def latest(records: Iterable[Record]) -> dict[bytes, bytes]:
    return {key: value for key, value in dict(records).items() if value is not None}


@pytest.fixture
async def mostly_replaced(cluster: Cluster) -> ReplicatedGroupLog:
    """A log with a follower, whose fifth record replaces the other four."""
    log = log_of(cluster.broker, 1)
    for _ in range(5):
        await append(cluster, log, (b"a", b"1"))
    return log


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trims write the records in use again one by one."""
    monkeypatch.setattr(replicated_group_log, "_PIECE", 1)


async def test_all_records_are_read_committed_or_not_as_of_the_first_step(cluster: Cluster) -> None:
    log = log_of(cluster.broker, 1)
    await append(cluster, log, (b"a", b"1"), (b"b", None))
    appending = await cluster.start(log.append(0, [(b"", b"2")]))
    reading = log.read(0)
    first = next(reading)
    await append(cluster, log, (b"c", b"3"))
    assert [first, *reading] == [(b"a", b"1"), (b"b", None), (b"", b"2")]
    assert await appending is ErrorCode.none


async def test_a_read_ends_when_its_log_begins_anew(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated_group_log, "_READ_AHEAD", 1)
    log = log_of(cluster.broker)
    for key in (b"a", b"b", b"c"):
        await log.append(0, [(key, b"1")])
    reading = log.read(0)
    next(reading)
    cluster.partition(OFFSETS).log.truncate_fully_and_start_at(2)
    assert list(reading) == []


async def test_logs_are_trimmed_while_it_runs(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for number in range(2 * SLICE):
        await log.append(0, [(b"a", b"%d" % number)])
    running = asyncio.create_task(log.run())
    await asyncio.sleep(1.5 * TRIM_INTERVAL)
    assert start_offset(cluster) == 2 * SLICE
    assert repr(log) == "<ReplicatedGroupLog of 1 partitions>"
    running.cancel()


async def test_a_trim_deletes_what_later_records_have_replaced(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for number in range(50):
        await log.append(0, [(b"a", b"%d" % number), (b"b", b"%d" % number), (b"c", None)])
    await log.append(0, [(b"b", None)])
    before = cluster.partition(OFFSETS).log.size_in_bytes
    await log.trim()
    assert start_offset(cluster) == 151
    assert cluster.partition(OFFSETS).log.size_in_bytes < before / 5
    assert list(log.read(0)) == [(b"a", b"49")]


async def test_a_log_without_a_record_in_use_is_emptied(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for value in (b"1", None):
        await log.append(0, [(b"a", value)])
    await log.trim()
    assert start_offset(cluster) == end_offset(cluster) == 2


async def test_a_log_is_trimmed_once_it_is_large_and_has_doubled(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    await log.append(0, [(b"a", b"x" * 1000)])
    await ReplicatedGroupLog(cluster.broker, partitions=1).trim()
    assert start_offset(cluster) == 0, "it is small"
    await log.trim()
    await log.append(0, [(b"b", b"1")])
    await log.trim()
    assert start_offset(cluster) == 1, "most of it is in use"
    for _ in range(50):
        await log.append(0, [(b"b", b"1")])
    await log.trim()
    assert start_offset(cluster) == 53


async def test_a_follower_does_not_trim_and_a_new_leader_does(
    cluster: Cluster, mostly_replaced: ReplicatedGroupLog
) -> None:
    lead_by(cluster, 1)
    await mostly_replaced.trim()
    lead_by(cluster, 0)
    assert (start_offset(cluster), end_offset(cluster)) == (0, 5)
    trimming = await cluster.start(mostly_replaced.trim())
    await replicate(cluster)
    await trimming
    assert start_offset(cluster) == 5


async def test_a_partition_without_a_replica_here_is_not_trimmed(
    cluster: Cluster, mostly_replaced: ReplicatedGroupLog
) -> None:
    elsewhere = PartitionState((1,), (1,), leader=1, partition_epoch=1)
    cluster.broker.apply(image_of([elsewhere], name=OFFSETS_TOPIC), [OFFSETS])
    await mostly_replaced.trim()


@pytest.mark.usefixtures("small_pieces")
async def test_what_is_appended_during_a_trim_is_not_overwritten(cluster: Cluster) -> None:
    log = log_of(cluster.broker, 1)
    for number in range(5):
        await append(cluster, log, *[(key, b"%d" % number) for key in (b"a", b"b", b"c")])
    trimming = await cluster.start(log.trim())
    for key, value in ((b"a", None), (b"b", b"5"), (b"c", b"5")):
        await append(cluster, log, (key, value))
    await replicate(cluster)
    await trimming
    assert start_offset(cluster) == 15
    assert latest(log.read(0)) == {b"b": b"5", b"c": b"5"}


async def test_a_record_that_may_still_be_truncated_replaces_nothing(
    cluster: Cluster, mostly_replaced: ReplicatedGroupLog
) -> None:
    appending = await cluster.start(mostly_replaced.append(0, [(b"a", b"2")]))
    await mostly_replaced.trim()
    assert start_offset(cluster) == 0
    await replicate(cluster)
    await appending
    trimming = await cluster.start(mostly_replaced.trim())
    await replicate(cluster)
    await trimming
    assert start_offset(cluster) == 6
    assert latest(mostly_replaced.read(0)) == {b"a": b"2"}


async def test_a_trim_ends_when_a_write_fails(cluster: Cluster, mostly_replaced: ReplicatedGroupLog) -> None:
    await mostly_replaced.trim()
    assert asyncio.get_running_loop().time() == COMMIT_TIMEOUT
    assert start_offset(cluster) == 0


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("keys", [[b"a"], [b"a", b"b"]], ids=["last piece", "earlier piece"])
@pytest.mark.parametrize("topic_id", [TOPIC_ID, UUID(int=2)], ids=["leader epoch", "topic"])
async def test_a_trim_ends_with_its_leader_epoch_and_with_its_topic(
    cluster: Cluster, topic_id: UUID, keys: list[bytes]
) -> None:
    log = log_of(cluster.broker, 1)
    for _ in range(5):
        await append(cluster, log, *[(key, b"1") for key in keys])
    trimming = await cluster.start(log.trim())
    await replicate(cluster)
    lead_by(cluster, 0, topic_id=topic_id)
    end = end_offset(cluster)
    await trimming
    assert (start_offset(cluster), end_offset(cluster)) == (0, end)


async def test_what_a_load_reads_is_not_deleted(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for _ in range(5):
        await log.append(0, [(b"a", b"1")])
    loaded = log.read(0)
    next(loaded)
    await log.trim()
    assert start_offset(cluster) == 0
    list(loaded)
    await log.trim()
    assert start_offset(cluster) > 0


changes = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.one_of(st.none(), st.binary(max_size=3))),
    min_size=1,
    max_size=3,
)


@given(st.lists(changes, min_size=1), st.lists(changes, max_size=6))
def test_a_trim_loses_no_latest_record(before: list[list[Record]], during: list[list[Record]]) -> None:
    """For any appends between the pieces that are written again, each of which a follower acknowledges."""

    async def scenario() -> None:
        async with ReplicaManager.running(HostedPartitions(0)) as replicas:
            cluster = Cluster(replicas)
            log = log_of(replicas, 1)
            for records in before:
                await append(cluster, log, *records)
            trimming = await cluster.start(log.trim())
            for records in during:
                await append(cluster, log, *records)
            while not trimming.done():
                await replicate(cluster)
                await asyncio.sleep(0)
            assert start_offset(cluster) == sum(map(len, before))
            assert latest(log.read(0)) == latest(record for records in before + during for record in records)

    with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        patch.setattr(replicated_group_log, "_PIECE", 1)
        runner.run(scenario())
