"""CreatePartitions and ListPartitionReassignments: requests and responses."""

from datetime import timedelta

from kio.schema.create_partitions.v3 import CreatePartitionsRequest
from kio.schema.create_partitions.v3.request import CreatePartitionsAssignment, CreatePartitionsTopic
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsRequest
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32, i32Timedelta

from examples.broker.controller.new_topic import MAX_PARTITIONS, NewTopic
from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.handlers.topic_admin import create_partitions, list_partition_reassignments
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import CONTEXT, ControlledCluster

THREE_SECONDS = i32Timedelta.parse(timedelta(seconds=3))


def more(name: str, total: int, *assigned: tuple[int, ...]) -> CreatePartitionsTopic:
    assignments = tuple(
        CreatePartitionsAssignment(broker_ids=tuple(BrokerId(replica) for replica in replicas))
        for replicas in assigned
    )
    return CreatePartitionsTopic(name=TopicName(name), count=i32(total), assignments=assignments or None)


async def add(
    cluster: ControlledCluster, *topics: CreatePartitionsTopic, validate_only: bool = False
) -> dict[str, ErrorCode]:
    request = CreatePartitionsRequest(topics=topics, timeout=THREE_SECONDS, validate_only=validate_only)
    response = await create_partitions(cluster.admins[0], CONTEXT, request)
    assert all((result.error_code == 0) == (result.error_message is None) for result in response.results)
    return {str(result.name): result.error_code for result in response.results}


def sizes(cluster: ControlledCluster) -> dict[str, int]:
    return {name: len(topic.partitions) for name, topic in cluster.controller.image.topics.items()}


async def test_each_topic_gets_its_partitions_or_its_error(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("a"), NewTopic("b"), NewTopic(OFFSETS_TOPIC)], 5)
        added = await add(
            cluster, more("a", 3, (1,), (2,)), more("b", 1), more("missing", 2), more(OFFSETS_TOPIC, 9)
        )
        assert added == {
            "a": ErrorCode.none,
            "b": ErrorCode.invalid_partitions,
            "missing": ErrorCode.unknown_topic_or_partition,
            OFFSETS_TOPIC: ErrorCode.invalid_topic_exception,
        }
        assert sizes(cluster) == {"a": 3, "b": 1, OFFSETS_TOPIC: 1}
        assert [state.replicas for state in cluster.controller.image.topics["a"].partitions[1:]] == [
            (1,),
            (2,),
        ]


async def test_validate_only_adds_nothing(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("a")], 5)
        assert await add(cluster, more("a", 3), more("b", 3), validate_only=True) == {
            "a": ErrorCode.none,
            "b": ErrorCode.unknown_topic_or_partition,
        }
        assert sizes(cluster) == {"a": 1}


async def test_a_topic_that_is_named_twice_gets_nothing(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("a")], 5)
        assert await add(cluster, more("a", 3), more("a", 4)) == {"a": ErrorCode.invalid_request}
        assert sizes(cluster) == {"a": 1}


async def test_too_many_partitions_together_are_refused(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("a"), NewTopic("b")], 5)
        half = MAX_PARTITIONS // 2
        assert await add(cluster, more("a", half + 1), more("b", half + 2)) == dict.fromkeys(
            "ab", ErrorCode.policy_violation
        )
        assert sizes(cluster) == {"a": 1, "b": 1}


async def test_no_partition_is_being_reassigned(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        request = ListPartitionReassignmentsRequest(timeout=THREE_SECONDS, topics=None)
        response = await list_partition_reassignments(cluster.admins[0], CONTEXT, request)
        assert (response.error_code, response.topics) == (ErrorCode.none, ())
