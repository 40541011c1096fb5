"""DescribeTopicPartitions: requests and responses."""

from kio.schema.describe_topic_partitions.v0 import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kio.schema.describe_topic_partitions.v0.request import Cursor, TopicRequest
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.handlers.cluster_metadata import MOST_PARTITIONS, describe_topic_partitions
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import CONTEXT, ControlledCluster


async def describe(
    cluster: ControlledCluster, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=TopicName(name)) for name in names),
        response_partition_limit=i32(limit),
        cursor=None
        if cursor is None
        else Cursor(topic_name=TopicName(cursor[0]), partition_index=i32(cursor[1])),
    )
    return await describe_topic_partitions(cluster.admins[0], CONTEXT, request)


def found(response: DescribeTopicPartitionsResponse) -> dict[str, list[int]]:
    return {
        str(topic.name): [int(partition.partition_index) for partition in topic.partitions]
        for topic in response.topics
    }


def next_page(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


async def test_a_topic_is_described_with_its_partitions(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("events", assignment=((0, 1), (0, 2)))], 5)
        for broker_id in (0, 2):
            cluster.controller.fence(broker_id)
        await cluster.settle()
        (topic,) = (await describe(cluster, "events")).topics
        assert (topic.error_code, topic.is_internal) == (ErrorCode.none, False)
        assert topic.topic_id == cluster.controller.image.topics["events"].topic_id
        led, lost = topic.partitions
        assert (led.error_code, led.leader_id, led.leader_epoch) == (ErrorCode.none, 1, 1)
        assert (led.replica_nodes, led.isr_nodes, led.offline_replicas) == ((0, 1), (1,), (0,))
        assert (lost.error_code, lost.leader_id) == (ErrorCode.leader_not_available, -1)
        assert lost.offline_replicas == (0, 2)
        assert (lost.eligible_leader_replicas, lost.last_known_elr) == ((), ())


async def test_all_topics_are_described_in_order_when_none_is_named(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("b"), NewTopic("a", 2), NewTopic(OFFSETS_TOPIC)], 5)
        response = await describe(cluster)
        assert found(response) == {OFFSETS_TOPIC: [0], "a": [0, 1], "b": [0]}
        assert [topic.is_internal for topic in response.topics] == [True, False, False]
        assert next_page(response) is None


async def test_an_unknown_topic_has_an_error(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("a")], 5)
        response = await describe(cluster, "missing", "a", "a")
        assert {topic.name: topic.error_code for topic in response.topics} == {
            "a": ErrorCode.none,
            "missing": ErrorCode.unknown_topic_or_partition,
        }


async def test_a_page_ends_at_the_limit_and_its_cursor_begins_the_next(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("a", 3), NewTopic("b", 2), NewTopic("c", 1)], 5)
        pages, cursor = [], None
        while True:
            response = await describe(cluster, "missing", "c", "b", "a", limit=2, cursor=cursor)
            pages.append(found(response))
            cursor = next_page(response)
            if cursor is None:
                break
        assert pages == [{"a": [0, 1]}, {"a": [2], "b": [0]}, {"b": [1], "c": [0], "missing": []}]


async def test_a_page_that_is_full_at_the_end_of_a_topic_goes_on_with_the_next_topic(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("a", 2), NewTopic("b", 2)], 5)
        response = await describe(cluster, limit=2)
        assert (found(response), next_page(response)) == ({"a": [0, 1]}, ("b", 0))
        # The topic of the cursor was deleted in between.
        response = await describe(cluster, limit=2, cursor=("aa", 1))
        assert (found(response), next_page(response)) == ({"b": [0, 1]}, None)


async def test_absurd_limits_and_cursors_are_brought_into_range(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("a", MOST_PARTITIONS + 1)], 5)
        assert found(await describe(cluster, limit=-5)) == {"a": [0]}
        response = await describe(cluster, limit=2**31 - 1, cursor=("a", -(2**31)))
        assert len(found(response)["a"]) == MOST_PARTITIONS
        assert next_page(response) == ("a", MOST_PARTITIONS)
        assert found(await describe(cluster, cursor=("a", 2**31 - 1))) == {"a": []}
