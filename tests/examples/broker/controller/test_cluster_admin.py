"""Administration through one broker: changes are answered when they are in that broker's metadata."""

import asyncio

import pytest

from examples.broker.controller.cluster_admin import AUTO_CREATION_TIMEOUT
from examples.broker.controller.election import ElectionType
from examples.broker.controller.new_topic import MAX_PARTITIONS, NewTopic
from examples.broker.controller.settings import OFFSETS_TOPIC, ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import PartitionState, TopicConfig, TopicImage
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import ControlledCluster, registration

ZERO, ONE = TopicPartition("events", 0), TopicPartition("events", 1)
EVENTS = NewTopic("events", assignment=((0, 1), (1, 0)))


def codes(results: dict[str, TopicImage | ApiError]) -> dict[str, ErrorCode]:
    return {
        name: result.code if isinstance(result, ApiError) else ErrorCode.none
        for name, result in results.items()
    }


def pending(cluster: ControlledCluster) -> int:
    return sum(entry.pending for admin in cluster.admins.values() for entry in admin.statistics().values())


async def test_a_creation_is_answered_when_this_broker_knows_the_topic(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        results = await cluster.admins[0].create_topics([NewTopic("a"), NewTopic("b")], 5)
        assert codes(results) == {"a": ErrorCode.none, "b": ErrorCode.none}
        assert all(name in cluster.admins[0].cache.image.topics for name in results)
        assert virtual_time.time() == 0
        assert pending(cluster) == 0


async def test_a_topic_that_cannot_be_created_does_not_delay_the_others(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        results = await cluster.admins[0].create_topics([NewTopic("a"), NewTopic("b", 0)], 5)
        assert codes(results) == {"a": ErrorCode.none, "b": ErrorCode.invalid_partitions}
        assert codes(await cluster.admins[0].create_topics([NewTopic("a")], 5)) == {
            "a": ErrorCode.topic_already_exists
        }


async def test_a_creation_not_in_the_brokers_metadata_times_out(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        cluster.pause(0)
        creation = asyncio.create_task(cluster.admins[0].create_topics([NewTopic("a"), NewTopic("b", 0)], 3))
        await cluster.settle()
        assert "a" in cluster.admins[1].cache.image.topics
        assert pending(cluster) == 1
        assert codes(await creation) == {
            "a": ErrorCode.request_timed_out,
            "b": ErrorCode.invalid_partitions,
        }
        assert virtual_time.time() == pytest.approx(3, abs=0.001)
        cluster.resume(0)


async def test_a_creation_is_answered_when_the_broker_gets_the_image_late(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        cluster.pause(0)
        creation = asyncio.create_task(cluster.admins[0].create_topics([NewTopic("a"), NewTopic("b")], 3))
        await asyncio.sleep(2)
        cluster.resume(0)
        assert codes(await creation) == {"a": ErrorCode.none, "b": ErrorCode.none}
        assert virtual_time.time() == 2
        assert pending(cluster) == 0


async def test_a_deletion_is_answered_when_this_broker_no_longer_knows_the_topic(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        admin = cluster.admins[0]
        await admin.create_topics([NewTopic("a")], 5)
        assert codes(await admin.delete_topics(["a", "b", "a"], 5)) == {
            "a": ErrorCode.none,
            "b": ErrorCode.unknown_topic_or_partition,
        }
        assert "a" not in admin.cache.image.topics
        assert virtual_time.time() == 0


async def test_a_deletion_is_answered_when_the_topic_was_created_again_meanwhile(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create_topics([NewTopic("a")], 5)
        cluster.pause(0)
        deletion = asyncio.create_task(cluster.admins[0].delete_topics(["a"], 3))
        await asyncio.sleep(1)
        await cluster.admins[1].create_topics([NewTopic("a")], 5)
        cluster.resume(0)
        assert codes(await deletion) == {"a": ErrorCode.none}
        assert virtual_time.time() == 1


async def test_a_deletion_not_in_the_brokers_metadata_times_out(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create_topics([NewTopic("a")], 5)
        cluster.pause(0)
        assert codes(await cluster.admins[0].delete_topics(["a"], 3)) == {"a": ErrorCode.request_timed_out}
        assert virtual_time.time() == pytest.approx(3, abs=0.001)
        cluster.resume(0)


async def lead_elsewhere(cluster: ControlledCluster) -> None:
    """Broker 1 leads both partitions of the topic, and broker 0 is back in sync."""
    await cluster.admins[0].create_topics([EVENTS], 5)
    cluster.controller.fence(0)
    cluster.controller.register(registration(0))
    for topic_partition in (ZERO, ONE):
        state = cluster.partition(topic_partition)
        wanted = PartitionState(state.replicas, (0, 1), 1, state.leader_epoch, state.partition_epoch)
        cluster.controller.alter_partition(1, topic_partition, wanted)
    await cluster.settle()


async def test_an_election_is_answered_when_this_broker_knows_the_leaders(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        await lead_elsewhere(cluster)
        admin = cluster.admins[2]
        results = await admin.elect_leaders(ElectionType.PREFERRED, [ZERO, ONE], 5)
        assert results[ZERO] == admin.cache.image.partition(ZERO) == cluster.partition(ZERO)
        assert isinstance(needless := results[ONE], ApiError)
        assert needless.code is ErrorCode.election_not_needed
        assert virtual_time.time() == 0
        assert await admin.elect_leaders(ElectionType.PREFERRED, None, 5) == {}
        assert pending(cluster) == 0


async def test_an_election_not_in_the_brokers_metadata_times_out(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await lead_elsewhere(cluster)
        cluster.pause(2)
        results = await cluster.admins[2].elect_leaders(ElectionType.PREFERRED, [ZERO], 3)
        assert isinstance(late := results[ZERO], ApiError)
        assert late.code is ErrorCode.request_timed_out
        assert virtual_time.time() == pytest.approx(3, abs=0.001)
        assert cluster.partition(ZERO).leader == 0
        cluster.resume(2)


async def test_an_election_is_answered_even_if_its_leader_has_failed_meanwhile(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        await lead_elsewhere(cluster)
        cluster.pause(2)
        election = asyncio.create_task(cluster.admins[2].elect_leaders(ElectionType.PREFERRED, [ZERO], 3))
        await asyncio.sleep(1)
        cluster.controller.fence(0)
        cluster.resume(2)
        assert isinstance((await election)[ZERO], PartitionState)
        assert virtual_time.time() == 1


async def test_a_disconnected_client_leaves_no_pending_operation(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await lead_elsewhere(cluster)
        cluster.pause(2)
        admin = cluster.admins[2]
        requests = [
            asyncio.create_task(admin.create_topics([NewTopic("a")], 60)),
            asyncio.create_task(admin.delete_topics(["events"], 60)),
            asyncio.create_task(admin.auto_create(["b"])),
        ]
        await cluster.settle()
        assert pending(cluster) == 3
        for request in requests:
            request.cancel()
        await asyncio.wait(requests)
        assert pending(cluster) == 0
        cluster.resume(2)


async def test_concurrent_auto_creations_share_one_topic(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        first, second = await asyncio.gather(
            cluster.admins[0].auto_create(["a"]), cluster.admins[1].auto_create(["a"])
        )
        assert first == second == {"a": cluster.controller.image.topics["a"]}


async def test_an_auto_creation_not_in_the_brokers_metadata_times_out(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        cluster.pause(0)
        results = await cluster.admins[0].auto_create(["a", "a b"])
        assert codes(results) == {
            "a": ErrorCode.leader_not_available,
            "a b": ErrorCode.invalid_topic_exception,
        }
        assert virtual_time.time() == pytest.approx(AUTO_CREATION_TIMEOUT, abs=0.001)
        cluster.resume(0)


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
async def test_the_offsets_topic_is_created_on_first_use_with_at_most_one_replica_a_broker(
    virtual_time: VirtualTimeLoop, brokers: int, replicas: int
) -> None:
    async with ControlledCluster.running(brokers, ClusterDefaults(offsets_topic_num_partitions=5)) as cluster:
        topic = await cluster.admins[0].ensure_offsets_topic()
        assert topic.name == OFFSETS_TOPIC
        assert [len(state.replicas) for state in topic.partitions] == [replicas] * 5
        assert await cluster.admins[brokers - 1].ensure_offsets_topic() is topic


async def test_the_offsets_topic_has_no_retention(virtual_time: VirtualTimeLoop) -> None:
    defaults = ClusterDefaults(topic_config=TopicConfig(retention_ms=1, retention_bytes=1, segment_bytes=7))
    async with ControlledCluster.running(1, defaults) as cluster:
        topic = await cluster.admins[0].ensure_offsets_topic()
        assert topic.config == TopicConfig(segment_bytes=7)


async def test_without_live_brokers_the_offsets_topic_is_not_created(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running(1) as cluster:
        cluster.controller.fence(0)
        with pytest.raises(ApiError, match="INVALID_REPLICATION_FACTOR"):
            await cluster.admins[0].ensure_offsets_topic()


async def test_a_stopping_broker_answers_as_if_requests_had_timed_out(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await lead_elsewhere(cluster)
        admin = cluster.admins[2]
        await admin.topic_purgatory.aclose()
        await admin.elect_leader_purgatory.aclose()
        assert codes(await admin.create_topics([NewTopic("a")], 5)) == {"a": ErrorCode.request_timed_out}
        assert codes(await admin.auto_create(["b"])) == {"b": ErrorCode.leader_not_available}
        elected = await admin.elect_leaders(ElectionType.PREFERRED, [ZERO], 5)
        assert isinstance(late := elected[ZERO], ApiError)
        assert late.code is ErrorCode.request_timed_out
        assert virtual_time.time() == 0
