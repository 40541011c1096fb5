"""Metadata and DescribeCluster: requests and responses."""

from uuid import UUID

import pytest
from kio.schema.describe_cluster.v1 import DescribeClusterRequest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v13 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v13.request import MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponseTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8

from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import OFFSETS_TOPIC, ClusterDefaults
from examples.broker.handlers.cluster_metadata import describe_cluster, metadata
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import CONTEXT, ControlledCluster

NOBODY = UUID(int=7)


async def ask(
    cluster: ControlledCluster,
    *names: str,
    broker: int = 0,
    topic_id: UUID | None = None,
    create: bool = False,
) -> MetadataResponse:
    """Request the metadata of topics by name, or of one by id."""
    topics = [MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in names]
    if topic_id is not None:
        topics.append(MetadataRequestTopic(topic_id=topic_id, name=None))
    return await send(cluster, tuple(topics), broker, create)


async def ask_all(cluster: ControlledCluster, broker: int = 0) -> MetadataResponse:
    return await send(cluster, None, broker, create=True)


async def send(
    cluster: ControlledCluster, topics: tuple[MetadataRequestTopic, ...] | None, broker: int, create: bool
) -> MetadataResponse:
    request = MetadataRequest(
        topics=topics, allow_auto_topic_creation=create, include_topic_authorized_operations=False
    )
    return await metadata(cluster.admins[broker], CONTEXT, request)


def only(response: MetadataResponse) -> MetadataResponseTopic:
    (topic,) = response.topics
    return topic


async def test_clients_get_all_live_brokers_and_this_one_as_the_controller(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        for broker in range(3):
            response = await ask(cluster, broker=broker)
            addresses = [(entry.node_id, entry.host, entry.port) for entry in response.brokers]
            assert addresses == [(0, "127.0.0.1", 9092), (1, "127.0.0.1", 9093), (2, "127.0.0.1", 9094)]
            assert response.controller_id == broker
            assert response.cluster_id == cluster.controller.cluster_id
            assert response.topics == ()


async def test_a_fenced_broker_is_not_listed_and_its_replicas_are_offline(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("events", assignment=((0, 1, 2),))], 5)
        cluster.controller.fence(0)
        await cluster.settle()
        response = await ask(cluster, "events")
        assert [entry.node_id for entry in response.brokers] == [1, 2]
        assert response.controller_id == 1
        (partition,) = only(response).partitions
        assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (ErrorCode.none, 1, 1)
        assert partition.replica_nodes == (0, 1, 2)
        assert partition.isr_nodes == (1, 2)
        assert partition.offline_replicas == (0,)


async def test_a_partition_without_a_leader_has_an_error_and_its_topic_has_none(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("events", assignment=((0,), (1,)))], 5)
        cluster.controller.fence(0)
        await cluster.settle()
        topic = only(await ask(cluster, "events"))
        assert topic.error_code is ErrorCode.none
        assert [(entry.error_code, entry.leader_id) for entry in topic.partitions] == [
            (ErrorCode.leader_not_available, -1),
            (ErrorCode.none, 1),
        ]


async def test_all_topics_are_listed_when_none_is_named(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("a"), NewTopic(OFFSETS_TOPIC)], 5)
        topics = {topic.name: topic for topic in (await ask_all(cluster)).topics}
        assert {name: topic.is_internal for name, topic in topics.items()} == {
            "a": False,
            OFFSETS_TOPIC: True,
        }


async def test_a_topic_can_be_asked_for_by_its_id(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[0].create([NewTopic("a"), NewTopic("b")], 5)
        topic_id = cluster.controller.image.topics["b"].topic_id
        found = only(await ask(cluster, topic_id=topic_id))
        assert (found.name, found.topic_id, found.error_code) == ("b", topic_id, ErrorCode.none)
        missing = only(await ask(cluster, topic_id=NOBODY, create=True))
        assert (missing.name, missing.topic_id) == (None, NOBODY)
        assert missing.error_code is ErrorCode.unknown_topic_id


async def test_an_unknown_topic_is_created_if_the_client_allows_it(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running(defaults=ClusterDefaults(num_partitions=2)) as cluster:
        assert only(await ask(cluster, "a")).error_code is ErrorCode.unknown_topic_or_partition
        assert cluster.controller.image.topics == {}
        created = only(await ask(cluster, "a", create=True))
        assert (created.error_code, len(created.partitions)) == (ErrorCode.none, 2)
        assert only(await ask(cluster, "a", create=True)) == created


async def test_no_topic_is_created_if_the_cluster_does_not_allow_it(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running(
        defaults=ClusterDefaults(auto_create_topics_enable=False)
    ) as cluster:
        topic = only(await ask(cluster, "a", create=True))
        assert (topic.name, topic.error_code) == ("a", ErrorCode.unknown_topic_or_partition)
        assert cluster.controller.image.topics == {}


async def test_the_error_of_a_creation_is_the_answer_of_its_topic_alone(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        response = await ask(cluster, "a b", "c", create=True)
        assert [(topic.name, topic.error_code) for topic in response.topics] == [
            ("a b", ErrorCode.invalid_topic_exception),
            ("c", ErrorCode.none),
        ]


@pytest.mark.parametrize("broker", range(3))
async def test_describing_the_cluster_lists_its_live_brokers(
    virtual_time: VirtualTimeLoop, broker: int
) -> None:
    async with ControlledCluster.running() as cluster:
        cluster.controller.fence(2)
        await cluster.settle()
        request = DescribeClusterRequest(include_cluster_authorized_operations=False)
        response = await describe_cluster(cluster.admins[broker], CONTEXT, request)
        assert [(entry.broker_id, entry.port) for entry in response.brokers] == [(0, 9092), (1, 9093)]
        assert response.cluster_id == cluster.controller.cluster_id
        assert response.controller_id == (broker if broker < 2 else 0)
        assert response.error_code is ErrorCode.none


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [(2, ErrorCode.mismatched_endpoint_type), (3, ErrorCode.unsupported_endpoint_type)],
)
async def test_controllers_cannot_be_described(
    virtual_time: VirtualTimeLoop, endpoint_type: int, error: ErrorCode
) -> None:
    async with ControlledCluster.running() as cluster:
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False, endpoint_type=i8(endpoint_type)
        )
        response = await describe_cluster(cluster.admins[0], CONTEXT, request)
        assert (response.error_code, response.brokers) == (error, ())


async def test_a_topic_that_is_named_twice_is_answered_once(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        assert only(await ask(cluster, "events", "events", create=True)).name == "events"


async def test_a_name_that_no_topic_can_have_is_invalid(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        assert only(await ask(cluster, "not/a/name")).error_code is ErrorCode.invalid_topic_exception
