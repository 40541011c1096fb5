"""The routes of a broker, and the lookup of a group's coordinator."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.node.routes import OffsetsTopicDirectory, routes
from examples.broker.protocol.apis import API_VERSIONS, APIS
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.controller.controlled_cluster import ControlledCluster
from tests.examples.broker.group.group_client import GROUP, MemoryLog

pytestmark = pytest.mark.usefixtures("virtual_time")


async def test_every_api_that_is_declared_has_a_handler() -> None:
    async with (
        ControlledCluster.running(1) as cluster,
        ReplicaManager.running(HostedPartitions(0)) as replicas,
        GroupCoordinator.running(0, MemoryLog()) as groups,
    ):
        routed = routes(replicas, groups, cluster.admins[0])
    assert routed.keys() == APIS.keys() - {API_VERSIONS.key}


@asynccontextmanager
async def directory(cluster: ControlledCluster) -> AsyncIterator[OffsetsTopicDirectory]:
    """The directory of broker 0."""
    async with GroupCoordinator.running(0, MemoryLog()) as groups:
        yield OffsetsTopicDirectory(cluster.admins[0], groups)


async def refusal(directory: OffsetsTopicDirectory) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        await directory.coordinator_of(GROUP)
    return refused.value.code


async def test_a_group_is_coordinated_by_the_leader_of_its_partition() -> None:
    async with ControlledCluster.running() as cluster, directory(cluster) as coordinators:
        found = await coordinators.coordinator_of(GROUP)
        async with GroupCoordinator.running(1, MemoryLog()) as groups:
            partition = TopicPartition(OFFSETS_TOPIC, groups.partition_for(GROUP))
        assert found.broker_id == cluster.partition(partition).leader


async def test_while_all_brokers_are_fenced_clients_have_to_retry() -> None:
    async with ControlledCluster.running(1) as cluster, directory(cluster) as coordinators:
        cluster.controller.fence(0)
        assert await refusal(coordinators) is ErrorCode.coordinator_not_available
        cluster.controller.heartbeat(0)
        assert (await coordinators.coordinator_of(GROUP)).broker_id == 0
        cluster.controller.fence(0)
        await cluster.settle()
        assert await refusal(coordinators) is ErrorCode.coordinator_not_available
