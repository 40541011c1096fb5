"""The log of a group coordinator, and its digest, which keeps a takeover short."""

import asyncio
from collections.abc import Iterable
from itertools import islice
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.broker.controller.cluster_defaults import OFFSETS_TOPIC
from examples.broker.errors import ErrorCode
from examples.broker.group.group_loader import SLICE
from examples.broker.group.group_log import Record
from examples.broker.metadata import PartitionState
from examples.broker.node.replicated_group_log import DIGEST_INTERVAL, ReplicatedGroupLog
from examples.broker.replication.fetch import FetchParams, PartitionFetch
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.leader_broker import TOPIC_ID, Cluster, image_of

OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)


def log_of(replicas: ReplicaManager, *replica_ids: int, topic_id: UUID = TOPIC_ID) -> ReplicatedGroupLog:
    """Return the log of a coordinator that leads the only partition."""
    state = PartitionState((0, *replica_ids), (0, *replica_ids), leader=0)
    replicas.apply(image_of([state], topic_id=topic_id, name=OFFSETS_TOPIC), [OFFSETS])
    return ReplicatedGroupLog(replicas, partitions=1)


def digest(log: ReplicatedGroupLog) -> int:
    """Bring the digest up to date; return the number of records that were read for that."""
    return sum(1 for _ in log.digest())


def latest(records: Iterable[Record]) -> dict[bytes, bytes]:
    return {key: value for key, value in dict(records).items() if value is not None}


async def test_a_takeover_reads_what_later_records_have_not_replaced(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for records in ([(b"a", b"1"), (b"b", b"1")], [(b"a", b"2")], [(b"c", b"1")], [(b"c", None)]):
        assert await log.append(0, records) is ErrorCode.NONE
    assert len(list(log.read(0))) == 5
    assert digest(log) == 5
    assert digest(log) == 0
    assert await log.append(0, [(b"b", None), (b"", b"3")]) is ErrorCode.NONE
    assert list(log.read(0)) == [(b"a", b"2"), (b"b", b"1"), (b"b", None), (b"", b"3")]


async def test_records_that_may_still_be_truncated_are_not_in_the_digest(cluster: Cluster) -> None:
    log = log_of(cluster.broker, 1)
    appending = await cluster.start(log.append(0, [(b"a", b"1")]))
    assert digest(log) == 0
    assert list(log.read(0)) == [(b"a", b"1")]
    await cluster.broker.fetch(FetchParams(1, max_wait=0), {OFFSETS: PartitionFetch(1)})
    assert await appending is ErrorCode.NONE
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


async def test_a_digest_of_deleted_records_is_not_used(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for key in (b"a", b"b"):
        await log.append(0, [(key, b"1")])
    digest(log)
    cluster.partition(OFFSETS).delete_records(1)
    assert list(log.read(0)) == [(b"b", b"1")]


async def test_a_digest_ends_when_its_log_begins_anew(cluster: Cluster) -> None:
    log = log_of(cluster.broker)
    for key in (b"a", b"b", b"c"):
        await log.append(0, [(key, b"1")])
    steps, partition = log.digest(), cluster.partition(OFFSETS)
    next(steps)
    partition.log.truncate_fully_and_start_at(2)
    partition.local.move_high_watermark(partition.log.log_end_offset_metadata)
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
    log = log_of(cluster.broker)
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


keys = st.sampled_from([b"a", b"b", b"c"])
changes = st.lists(st.tuples(keys, st.one_of(st.none(), st.binary(max_size=3))), min_size=1, max_size=3)


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
