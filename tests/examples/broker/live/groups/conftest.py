"""A consumer group for each test that asks for one, with each client in turn."""

import re
from collections.abc import Iterator

import pytest

from tests.examples.broker.live.groups.group_consumers import CONSUMERS
from tests.examples.broker.live.groups.live_group import LiveGroup
from tests.examples.broker.live.live_cluster import LiveCluster


@pytest.fixture(params=CONSUMERS)
def client(request: pytest.FixtureRequest) -> str:
    """The name of one; a test that asks for it is run with every one of them."""
    name: str = request.param
    return name


@pytest.fixture
def group_name(request: pytest.FixtureRequest) -> str:
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)


@pytest.fixture
def group(shared_cluster: LiveCluster, client: str, group_name: str) -> Iterator[LiveGroup]:
    """Nobody is in it yet. After the test everybody leaves, and nothing may be left waiting."""
    with LiveGroup.running(shared_cluster, client, group_name) as group:
        yield group
