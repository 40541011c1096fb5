"""A cluster of brokers in virtual time, which have metadata alone."""

from collections.abc import AsyncIterator

import pytest

from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import ControlledCluster


@pytest.fixture
async def brokers(virtual_time: VirtualTimeLoop) -> AsyncIterator[ControlledCluster]:
    """Three brokers that apply images as they come."""
    async with ControlledCluster.running() as cluster:
        yield cluster
