"""The routes of a broker."""

from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.node.routes import routes
from examples.broker.protocol.apis import API_VERSIONS, APIS
from examples.broker.replication.replica_manager import ReplicaManager
from tests.examples.broker.controller.controlled_cluster import ControlledCluster
from tests.examples.broker.group.group_client import MemoryLog


async def test_every_api_that_is_declared_has_a_handler() -> None:
    async with (
        ControlledCluster.running(1) as cluster,
        ReplicaManager.running(0) as replicas,
        GroupCoordinator.running(0, MemoryLog()) as groups,
    ):
        routed = routes(replicas, groups, cluster.admins[0])
    assert routed.keys() == APIS.keys() - {API_VERSIONS.key}
