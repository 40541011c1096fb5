"""Administration through one broker: changes are answered when they are in that broker's metadata."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import pytest

from examples.broker.controller.cluster_admin import AUTO_CREATION_TIMEOUT, ClusterAdmin
from examples.broker.controller.election import ElectionType
from examples.broker.controller.new_topic import MAX_PARTITIONS, NewPartitions, NewTopic
from examples.broker.controller.settings import OFFSETS_TOPIC, ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import PartitionState, TopicConfig
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import ControlledCluster, registration

ZERO, ONE = TopicPartition("events", 0), TopicPartition("events", 1)
PREFERRED = ElectionType.PREFERRED
Results = Mapping[str, object] | Mapping[TopicPartition, object]

# A change through a broker, with a timeout of 3 s, and the errors of its parts that cannot be made.
CHANGES: Mapping[str, tuple[Callable[[ClusterAdmin], Awaitable[Results]], dict[object, ErrorCode]]] = {
    "creation": (
        lambda admin: admin.create([NewTopic("a"), NewTopic("b"), NewTopic("wrong", 0)], 3),
        {"a": ErrorCode.none, "b": ErrorCode.none, "wrong": ErrorCode.invalid_partitions},
    ),
    "partitions": (
        lambda admin: admin.create([NewPartitions("events", 3), NewPartitions("missing", 3)], 3),
        {"events": ErrorCode.none, "missing": ErrorCode.unknown_topic_or_partition},
    ),
    "election": (
        lambda admin: admin.elect_leaders(PREFERRED, [ZERO, ONE], 3),
        {ZERO: ErrorCode.none, ONE: ErrorCode.election_not_needed},
    ),
    "deletion": (
        lambda admin: admin.delete_topics(["events", "missing", "events"], 3),
        {"events": ErrorCode.none, "missing": ErrorCode.unknown_topic_or_partition},
    ),
}


def codes(results: Results) -> dict[object, ErrorCode]:
    return {
        name: result.code if isinstance(result, ApiError) else ErrorCode.none
        for name, result in results.items()
    }


def pending(cluster: ControlledCluster) -> int:
    return sum(entry.pending for admin in cluster.admins.values() for entry in admin.statistics().values())


@pytest.fixture
async def cluster(virtual_time: VirtualTimeLoop) -> AsyncIterator[ControlledCluster]:
    """Broker 1 leads both partitions of a topic, and broker 0, the preferred leader of one, is in sync."""
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("events", assignment=((0, 1), (1, 0)))], 5)
        cluster.controller.fence(0)
        cluster.controller.register(registration(0))
        for topic_partition in (ZERO, ONE):
            state = cluster.partition(topic_partition)
            wanted = PartitionState(state.replicas, (0, 1), 1, state.leader_epoch, state.partition_epoch)
            cluster.controller.alter_partition(1, topic_partition, wanted)
        await cluster.settle()
        yield cluster


@pytest.mark.parametrize("late", [0, 2])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_is_answered_when_this_broker_knows_it(
    virtual_time: VirtualTimeLoop, cluster: ControlledCluster, change: str, late: int
) -> None:
    act, expected = CHANGES[change]
    cluster.pause(2)
    request = asyncio.ensure_future(act(cluster.admins[2]))
    await asyncio.sleep(late)
    assert not request.done()
    cluster.resume(2)
    assert codes(await request) == expected
    assert cluster.admins[2].cache.image is cluster.controller.image
    assert (virtual_time.time(), pending(cluster)) == (late, 0)


@pytest.mark.parametrize("stopping", [False, True])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_not_in_this_brokers_metadata_times_out_or_at_once_if_the_broker_stops(
    virtual_time: VirtualTimeLoop, cluster: ControlledCluster, change: str, stopping: bool
) -> None:
    act, expected = CHANGES[change]
    admin = cluster.admins[2]
    cluster.pause(2)
    if stopping:
        await admin.topic_purgatory.aclose()
        await admin.elect_leader_purgatory.aclose()
    late = {name: code or ErrorCode.request_timed_out for name, code in expected.items()}
    assert codes(await act(admin)) == late
    assert virtual_time.time() == pytest.approx(0 if stopping else 3, abs=0.001)
    await cluster.settle()
    assert cluster.admins[1].cache.image is cluster.controller.image


async def test_a_deletion_is_answered_when_the_topic_was_created_again_meanwhile(
    virtual_time: VirtualTimeLoop, cluster: ControlledCluster
) -> None:
    cluster.pause(0)
    deletion = asyncio.create_task(cluster.admins[0].delete_topics(["events"], 3))
    await asyncio.sleep(1)
    await cluster.admins[1].create([NewTopic("events")], 5)
    cluster.resume(0)
    assert codes(await deletion) == {"events": ErrorCode.none}
    assert virtual_time.time() == 1


async def test_an_election_is_answered_even_if_its_leader_has_failed_meanwhile(
    virtual_time: VirtualTimeLoop, cluster: ControlledCluster
) -> None:
    cluster.pause(2)
    election = asyncio.create_task(cluster.admins[2].elect_leaders(PREFERRED, [ZERO], 3))
    await asyncio.sleep(1)
    cluster.controller.fence(0)
    cluster.resume(2)
    assert isinstance((await election)[ZERO], PartitionState)
    assert virtual_time.time() == 1


async def test_a_disconnected_client_leaves_no_pending_operation(cluster: ControlledCluster) -> None:
    cluster.pause(2)
    requests = [asyncio.ensure_future(act(cluster.admins[2])) for act, _ in CHANGES.values()]
    await cluster.settle()
    assert pending(cluster) == len(CHANGES)
    for request in requests:
        request.cancel()
    await asyncio.wait(requests)
    assert pending(cluster) == 0


async def test_concurrent_auto_creations_share_one_topic(cluster: ControlledCluster) -> None:
    first, second = await asyncio.gather(*(cluster.admins[index].auto_create(["a"]) for index in (0, 1)))
    assert first == second == {"a": cluster.controller.image.topics["a"]}


async def test_an_auto_creation_not_in_the_brokers_metadata_times_out(
    virtual_time: VirtualTimeLoop, cluster: ControlledCluster
) -> None:
    cluster.pause(0)
    assert codes(await cluster.admins[0].auto_create(["a", "a b"])) == {
        "a": ErrorCode.leader_not_available,
        "a b": ErrorCode.invalid_topic_exception,
    }
    assert virtual_time.time() == pytest.approx(AUTO_CREATION_TIMEOUT, abs=0.001)


async def test_too_many_unknown_topics_are_not_created_and_known_ones_are_returned(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running(defaults=ClusterDefaults(num_partitions=MAX_PARTITIONS)) as cluster:
        known = (await cluster.admins[0].auto_create(["known"]))["known"]
        results = await cluster.admins[0].auto_create(["a", "known", "b"])
        assert codes(results) == dict.fromkeys("ab", ErrorCode.policy_violation) | {"known": ErrorCode.none}
        assert results["known"] is known
        assert list(cluster.controller.image.topics) == ["known"]


@pytest.mark.parametrize(("brokers", "replicas"), [(1, 1), (2, 2), (4, 3)])
async def test_the_offsets_topic_is_created_on_first_use_with_at_most_one_replica_a_broker_and_no_retention(
    virtual_time: VirtualTimeLoop, brokers: int, replicas: int
) -> None:
    config = TopicConfig(retention_ms=1, retention_bytes=1, segment_bytes=14)
    defaults = ClusterDefaults(offsets_topic_num_partitions=5, topic_config=config)
    async with ControlledCluster.running(brokers, defaults) as cluster:
        topic = await cluster.admins[0].ensure_offsets_topic()
        assert topic.name == OFFSETS_TOPIC
        assert [len(state.replicas) for state in topic.partitions] == [replicas] * 5
        assert topic.config == TopicConfig(segment_bytes=14)
        assert await cluster.admins[brokers - 1].ensure_offsets_topic() is topic


async def test_without_live_brokers_the_offsets_topic_is_not_created(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running(1) as cluster:
        cluster.controller.fence(0)
        with pytest.raises(ApiError, match="INVALID_REPLICATION_FACTOR"):
            await cluster.admins[0].ensure_offsets_topic()
