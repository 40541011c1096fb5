"""CreateTopics and DeleteTopics: requests and responses."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from kio.schema.create_topics.v7 import CreateTopicsRequest
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from kio.schema.create_topics.v7.response import CreatableTopicResult
from kio.schema.delete_topics.v5 import DeleteTopicsRequest
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from examples.broker.controller.new_topic import MAX_PARTITIONS
from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.handlers.topic_admin import create_topics, delete_topics
from examples.broker.metadata import TopicConfig
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import CONTEXT, ControlledCluster

THREE_SECONDS = i32Timedelta.parse(timedelta(seconds=3))


def topic(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    *,
    assignments: Sequence[tuple[int, tuple[int, ...]]] = (),
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(factor),
        assignments=tuple(
            CreatableReplicaAssignment(
                partition_index=i32(index), broker_ids=tuple(BrokerId(replica) for replica in replicas)
            )
            for index, replicas in assignments
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )


async def create(
    cluster: ControlledCluster, *topics: CreatableTopic, validate_only: bool = False
) -> dict[str, CreatableTopicResult]:
    request = CreateTopicsRequest(topics=topics, timeout=THREE_SECONDS, validate_only=validate_only)
    response = await create_topics(cluster.admins[0], CONTEXT, request)
    return {str(result.name): result for result in response.topics}


async def delete(cluster: ControlledCluster, *names: str) -> dict[str, ErrorCode]:
    request = DeleteTopicsRequest(topic_names=tuple(TopicName(name) for name in names), timeout=THREE_SECONDS)
    response = await delete_topics(cluster.admins[0], CONTEXT, request)
    return {str(result.name): result.error_code for result in response.responses}


async def test_a_created_topic_is_described(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        configs = {"min.insync.replicas": "2", "cleanup.policy": "delete"}
        result = (await create(cluster, topic("events", 4, 3, configs=configs)))["events"]
        created = cluster.controller.image.topics["events"]
        assert created.config == TopicConfig(min_insync_replicas=2)
        assert (result.error_code, result.error_message) == (ErrorCode.none, None)
        assert (result.num_partitions, result.replication_factor) == (4, 3)
        assert result.topic_id == created.topic_id
        assert result.configs is not None
        sources = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
        assert sources["min.insync.replicas"] == ("2", 1)
        assert sources["cleanup.policy"] == ("delete", 5)


async def test_validate_only_returns_the_same_and_creates_nothing(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        results = await create(cluster, topic("a", 4, 3), topic("b", 4, 5), validate_only=True)
        assert {name: result.error_code for name, result in results.items()} == {
            "a": ErrorCode.none,
            "b": ErrorCode.invalid_replication_factor,
        }
        assert results["a"].num_partitions == 4
        assert cluster.controller.image.topics == {}


async def test_an_assignment_names_each_partition_once(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        results = await create(
            cluster,
            topic("good", assignments=[(1, (2, 0)), (0, (1, 2))]),
            topic("gap", assignments=[(0, (0,)), (2, (1,))]),
            topic("twice", assignments=[(0, (0,)), (0, (1,))]),
            topic("and numbers", 2, assignments=[(0, (0,)), (1, (1,))]),
            topic("and factor", -1, 1, assignments=[(0, (0,)), (1, (1,))]),
        )
        assert {name: result.error_code for name, result in results.items()} == {
            "gap": ErrorCode.invalid_replica_assignment,
            "twice": ErrorCode.invalid_replica_assignment,
            "and numbers": ErrorCode.invalid_request,
            "and factor": ErrorCode.invalid_request,
            "good": ErrorCode.none,
        }
        good = cluster.controller.image.topics["good"]
        assert [state.replicas for state in good.partitions] == [(1, 2), (2, 0)]


async def test_a_refused_topic_has_a_message_and_the_others_are_created(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        results = await create(
            cluster,
            topic("a b"),
            topic("odd", configs={"no.such.setting": "1"}),
            topic("twice"),
            topic("twice"),
            topic("good"),
        )
        assert {name: result.error_code for name, result in results.items()} == {
            "a b": ErrorCode.invalid_topic_exception,
            "odd": ErrorCode.invalid_config,
            "twice": ErrorCode.invalid_request,
            "good": ErrorCode.none,
        }
        assert "no.such.setting" in str(results["odd"].error_message)
        assert list(cluster.controller.image.topics) == ["good"]


async def test_clients_cannot_create_the_offsets_topic(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        for validate_only in (True, False):
            results = await create(cluster, topic(OFFSETS_TOPIC, 1), validate_only=validate_only)
            assert results[OFFSETS_TOPIC].error_code is ErrorCode.invalid_topic_exception
        created = await cluster.admins[0].ensure_offsets_topic()
        assert len(created.partitions) == cluster.controller.defaults.offsets_topic_num_partitions


async def test_topics_with_too_many_partitions_together_are_refused(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        assigned = topic("b", assignments=[(index, (0,)) for index in range(2)])
        topics = (topic("a", MAX_PARTITIONS - 1), assigned, topic("negative", -10))
        for validate_only in (True, False):
            results = await create(cluster, *topics, validate_only=validate_only)
            assert {result.error_code for result in results.values()} == {ErrorCode.policy_violation}
        assert cluster.controller.image.topics == {}
        results = await create(cluster, *topics[:1], topic("b"), validate_only=True)
        assert {result.error_code for result in results.values()} == {ErrorCode.none}


async def test_a_creation_not_in_the_brokers_metadata_times_out_at_the_clients_timeout(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        cluster.pause(0)
        results = await create(cluster, topic("events"))
        assert results["events"].error_code is ErrorCode.request_timed_out
        assert round(virtual_time.time(), 2) == 3
        assert await delete(cluster, "events") == {"events": ErrorCode.none}


async def test_each_deleted_topic_is_answered(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await create(cluster, topic("a"), topic("b"))
        assert await delete(cluster, "a", "missing") == {
            "a": ErrorCode.none,
            "missing": ErrorCode.unknown_topic_or_partition,
        }
        assert list(cluster.controller.image.topics) == ["b"]
        assert await delete(cluster) == {}


async def test_a_topic_that_is_named_twice_is_not_deleted(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await create(cluster, topic("a"))
        assert await delete(cluster, "a", "a") == {"a": ErrorCode.invalid_request}
        assert list(cluster.controller.image.topics) == ["a"]
