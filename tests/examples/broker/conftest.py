"""A running broker for every test that asks for one, in virtual time."""

from collections.abc import AsyncIterator

import pytest

from examples.broker.replication.replica_manager import ReplicaManager
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.cluster import CONFIG, Cluster


@pytest.fixture
async def cluster(virtual_time: VirtualTimeLoop) -> AsyncIterator[Cluster]:
    async with ReplicaManager.running(0, CONFIG) as broker:
        yield Cluster(broker)
