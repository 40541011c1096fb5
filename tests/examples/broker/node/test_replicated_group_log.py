"""The log of a group coordinator, and its digest, which keeps a takeover short."""

import asyncio
from collections.abc import Iterable
from itertools import islice
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ErrorCode
from examples.broker.group.group_log import SLICE, Record
from examples.broker.metadata import PartitionState
from examples.broker.node import group_log_digest
from examples.broker.node.group_log_digest import GroupLogDigest
from examples.broker.node.replicated_group_log import COMMIT_TIMEOUT, DIGEST_INTERVAL, ReplicatedGroupLog
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


def stored(cluster: Cluster) -> dict[bytes, bytes]:
    """What a coordinator without a digest reads."""
    return latest(ReplicatedGroupLog(cluster.broker, partitions=1).read(0))


def start_offset(cluster: Cluster) -> int:
    return cluster.partition(OFFSETS).log.log_start_offset


async def replicate(cluster: Cluster) -> None:
    """Let the follower acknowledge all that the log has."""
    end = cluster.partition(OFFSETS).log.log_end_offset
    await cluster.broker.fetch(FetchParams(1, max_wait=0), {OFFSETS: PartitionFetch(end)})


async def append(cluster: Cluster, log: ReplicatedGroupLog, *records: Record) -> None:
    appending = await cluster.start(log.append(0, records))
    await replicate(cluster)
    assert await appending is ErrorCode.none


def digest(log: ReplicatedGroupLog) -> int:
    """Bring the digest up to date; return the number of records that were read for that."""
    return sum(1 for _ in log.digest())


def latest(records: Iterable[Record]) -> dict[bytes, bytes]:
    return {key: value for key, value in dict(records).items() if value is not None}


@pytest.fixture
async def mostly_replaced(cluster: Cluster) -> ReplicatedGroupLog:
    """A log with a follower, whose fifth record replaces the other four. Its digest is up to date."""
    log = log_of(cluster.broker, 1)
    for _ in range(5):
        await append(cluster, log, (b"a", b"1"))
    digest(log)
    return log


async def test_a_takeover_reads_what_later_records_have_not_replaced(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for records in ([(b"a", b"1"), (b"b", b"1")], [(b"a", b"2")], [(b"c", b"1")], [(b"c", None)]):
        assert await log.append(0, records) is ErrorCode.none
    assert len(list(log.read(0))) == 5
    assert digest(log) == 5
    assert digest(log) == 0
    assert await log.append(0, [(b"b", None), (b"", b"3")]) is ErrorCode.none
    assert list(log.read(0)) == [(b"a", b"2"), (b"b", b"1"), (b"b", None), (b"", b"3")]


async def test_records_that_may_still_be_truncated_are_not_in_the_digest(cluster: Cluster) -> None:
    log = log_of(cluster.broker, 1)
    appending = await cluster.start(log.append(0, [(b"a", b"1")]))
    assert digest(log) == 0
    assert list(log.read(0)) == [(b"a", b"1")]
    await cluster.broker.fetch(FetchParams(1, max_wait=0), {OFFSETS: PartitionFetch(1)})
    assert await appending is ErrorCode.none
    assert digest(log) == 1


@pytest.mark.parametrize("digested", [False, True])
async def test_a_digest_of_another_log_is_not_used(cluster: Cluster, digested: bool) -> None:
    log = log_of(cluster.broker)
    await log.append(0, [(b"a", b"1")])
    digest(log)
    log_of(cluster.broker, topic_id=UUID(int=2))
    await log.append(0, [(b"b", b"1")])
    if digested:
        digest(log)
    assert list(log.read(0)) == [(b"b", b"1")]


async def test_a_digest_is_not_used_when_the_record_after_it_is_deleted(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    await log.append(0, [(b"a", b"1")])
    digest(log)
    for key in (b"b", b"c"):
        await log.append(0, [(key, b"1")])
    cluster.partition(OFFSETS).delete_records(2)
    assert list(log.read(0)) == [(b"c", b"1")]


async def test_a_digest_ends_when_its_log_begins_anew(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for key in (b"a", b"b", b"c"):
        await log.append(0, [(key, b"1")])
    steps, partition = log.digest(), cluster.partition(OFFSETS)
    next(steps)
    partition.log.truncate_fully_and_start_at(2)
    partition.local.high_watermark = partition.log.log_end_offset
    list(steps)
    await log.append(0, [(b"d", b"1")])
    assert list(log.read(0)) == [(b"d", b"1")]


async def test_what_the_digest_reads_during_a_load_is_loaded(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    await log.append(0, [(b"a", b"1"), (b"b", b"1")])
    digest(log)
    await log.append(0, [(b"a", b"2")])
    loaded = log.read(0)
    first = next(loaded)
    assert digest(log) == 1
    assert [first, *loaded] == [(b"a", b"1"), (b"b", b"1"), (b"a", b"2")]


async def test_a_partition_without_a_replica_here_has_no_digest(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    await log.append(0, [(b"a", b"1")])
    digest(log)
    elsewhere = PartitionState((1,), (1,), leader=1, partition_epoch=1)
    cluster.broker.apply(image_of([elsewhere], name=OFFSETS_TOPIC), [OFFSETS])
    assert digest(log) == 0
    assert repr(log) == "<ReplicatedGroupLog with digests of 0 partitions>"


async def test_the_digest_is_brought_up_to_date_in_slices(cluster: Cluster) -> None:
    log_of(cluster.broker)
    log = ReplicatedGroupLog(cluster.broker, partitions=1)
    count = 2 * SLICE + 1
    for number in range(count):
        await log.append(0, [(b"a", b"%d" % number)])
    running = asyncio.create_task(log.run())
    await asyncio.sleep(0)
    assert len(list(log.read(0))) == count
    await asyncio.sleep(DIGEST_INTERVAL)
    assert len(list(log.read(0))) > 1, "the first slice"
    await asyncio.sleep(DIGEST_INTERVAL / 2)
    assert list(log.read(0)) == [(b"a", b"%d" % (count - 1))]
    running.cancel()


async def test_a_trim_deletes_what_later_records_have_replaced(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for number in range(50):
        await log.append(0, [(b"a", b"%d" % number), (b"b", b"%d" % number), (b"c", None)])
    await log.append(0, [(b"b", None)])
    digest(log)
    before = cluster.partition(OFFSETS).log.size_in_bytes
    await log.trim()
    assert start_offset(cluster) == 151
    assert cluster.partition(OFFSETS).log.size_in_bytes < before / 5
    assert stored(cluster) == latest(log.read(0)) == {b"a": b"49"}
    digest(log)
    await log.append(0, [(b"a", b"50")])
    assert list(log.read(0)) == [(b"a", b"49"), (b"a", b"50")], "the digest goes on"


async def test_logs_are_trimmed_while_it_runs(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for _ in range(5):
        await log.append(0, [(b"a", b"1")])
    running = asyncio.create_task(log.run())
    await asyncio.sleep(1.5 * DIGEST_INTERVAL)
    assert start_offset(cluster) == 5
    running.cancel()


async def test_a_log_without_a_record_in_use_is_emptied(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for value in (b"1", None):
        await log.append(0, [(b"a", value)])
    digest(log)
    await log.trim()
    assert start_offset(cluster) == cluster.partition(OFFSETS).log.log_end_offset == 2


async def test_a_log_is_not_trimmed_while_it_is_small_or_mostly_in_use(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    await log.append(0, [(b"key", b"x" * 1000)])
    digest(log)
    await log.trim()
    for _ in range(10):
        await log.append(0, [(b"a", b"1")])
    small = ReplicatedGroupLog(cluster.broker, partitions=1)
    digest(small)
    await small.trim()
    assert start_offset(cluster) == 0


async def test_a_digest_that_is_not_of_the_log_trims_nothing(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    await log.append(0, [(b"a", b"1")])
    digest(log)
    for value in (b"2", b"3"):
        await log.append(0, [(b"a", value)])
    cluster.partition(OFFSETS).delete_records(2)
    await log.trim()
    assert stored(cluster) == {b"a": b"3"}


async def test_a_follower_does_not_trim(cluster: Cluster, mostly_replaced: ReplicatedGroupLog) -> None:
    lead_by(cluster, 1)
    await mostly_replaced.trim()
    lead_by(cluster, 0)
    assert start_offset(cluster) == 0
    assert cluster.partition(OFFSETS).log.log_end_offset == 5


async def test_what_is_appended_during_a_trim_is_not_overwritten(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_log_digest, "_PIECE", 1)
    log = log_of(cluster.broker, 1)
    for number in range(5):
        await append(cluster, log, *[(key, b"%d" % number) for key in (b"a", b"b", b"c")])
    digest(log)
    trimming = await cluster.start(log.trim())
    for key, value in ((b"a", None), (b"b", b"5"), (b"c", b"5")):
        await append(cluster, log, (key, value))
    await replicate(cluster)
    await trimming
    assert start_offset(cluster) == 15
    assert stored(cluster) == {b"b": b"5", b"c": b"5"}


async def test_nothing_is_deleted_before_what_replaces_it_is_committed(
    cluster: Cluster, mostly_replaced: ReplicatedGroupLog
) -> None:
    appending = await cluster.start(mostly_replaced.append(0, [(b"a", b"2")]))
    await mostly_replaced.trim()
    assert start_offset(cluster) == 0
    await replicate(cluster)
    await appending
    await mostly_replaced.trim()
    assert start_offset(cluster) == 5
    assert stored(cluster) == {b"a": b"2"}


async def test_a_trim_ends_when_a_write_fails(cluster: Cluster, mostly_replaced: ReplicatedGroupLog) -> None:
    await mostly_replaced.trim()
    assert asyncio.get_running_loop().time() == COMMIT_TIMEOUT
    assert start_offset(cluster) == 0


@pytest.mark.parametrize("topic_id", [TOPIC_ID, UUID(int=2)], ids=["leader epoch", "topic"])
async def test_a_trim_ends_with_its_leader_epoch_and_with_its_topic(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, topic_id: UUID
) -> None:
    monkeypatch.setattr(group_log_digest, "_PIECE", 1)
    log = log_of(cluster.broker, 1)
    for _ in range(5):
        await append(cluster, log, (b"a", b"1"), (b"b", b"1"))
    digest(log)
    trimming = await cluster.start(log.trim())
    await replicate(cluster)
    lead_by(cluster, 0, topic_id=topic_id)
    end = cluster.partition(OFFSETS).log.log_end_offset
    await trimming
    assert start_offset(cluster) == 0
    assert cluster.partition(OFFSETS).log.log_end_offset == end


async def test_what_a_load_reads_is_not_deleted(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for _ in range(5):
        await log.append(0, [(b"a", b"1")])
    digest(log)
    loaded = log.read(0)
    next(loaded)
    await log.trim()
    assert start_offset(cluster) == 0
    list(loaded)
    await log.trim()
    assert start_offset(cluster) > 0


keys = st.sampled_from([b"a", b"b", b"c"])
changes = st.lists(st.tuples(keys, st.one_of(st.none(), st.binary(max_size=3))), min_size=1, max_size=3)


@given(
    st.lists(changes, min_size=1),
    st.lists(st.lists(changes, max_size=2), min_size=3, max_size=3),
    st.integers(0, 20),
)
def test_a_trim_loses_no_latest_record(
    before: list[list[Record]], during: list[list[list[Record]]], digested: int
) -> None:
    """For any digest, and for any appends between the pieces that are written again."""

    async def scenario() -> None:
        async with ReplicaManager.running(0) as replicas:
            log, appended = log_of(replicas), []

            async def change(records: list[Record]) -> None:
                appended.extend(records)
                await log.append(0, records)

            for records in before:
                await change(records)
            list(islice(log.digest(), digested))
            partition = replicas.partitions.leader(OFFSETS)
            kept = GroupLogDigest(partition.log)
            list(islice(kept.read_on(partition), digested))
            start, changes = kept.next_offset, iter(during)
            for piece, _ in kept.records_in_use():
                await log.append(0, piece) if piece else None
                for records in next(changes):
                    await change(records)
            await replicas.delete_records(0, {OFFSETS: start})
            for reader in (log, ReplicatedGroupLog(replicas, partitions=1)):
                assert latest(reader.read(0)) == latest(appended)

    with (
        pytest.MonkeyPatch.context() as patch,
        asyncio.Runner(loop_factory=VirtualTimeLoop) as runner,
    ):
        patch.setattr(group_log_digest, "_PIECE", 1)
        runner.run(scenario())


@given(st.lists(st.one_of(changes, st.integers(0, 5))))
def test_a_digest_hides_no_latest_record(events: list[list[Record] | int]) -> None:
    """For any appends, with digests that stop after any number of records."""

    async def scenario() -> None:
        async with ReplicaManager.running(0) as replicas:
            log, appended = log_of(replicas), []
            for event in events:
                if isinstance(event, int):
                    list(islice(log.digest(), event))
                else:
                    appended += event
                    await log.append(0, event)
                assert latest(log.read(0)) == latest(appended)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(scenario())
