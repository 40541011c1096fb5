"""A running broker in virtual time."""

from collections.abc import AsyncIterator

import pytest

from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_manager import ReplicaManager
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.leader_broker import REPLICA_LAG_TIME_MAX, Cluster


@pytest.fixture
async def cluster(virtual_time: VirtualTimeLoop) -> AsyncIterator[Cluster]:
    async with ReplicaManager.running(
        HostedPartitions(0, replica_lag_time_max=REPLICA_LAG_TIME_MAX)
    ) as broker:
        yield Cluster(broker)
