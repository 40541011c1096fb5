"""A consumer group for a test, with each client in turn."""

import re
from collections.abc import Iterator

import pytest

from tests.examples.broker.live.clients.python_clients import NAMED
from tests.examples.broker.live.groups.live_group import LiveGroup
from tests.examples.broker.live.live_cluster import LiveCluster


@pytest.fixture(params=NAMED)
def client(request: pytest.FixtureRequest) -> str:
    """The name of a client. Runs the test with each client in turn."""
    name: str = request.param
    return name


@pytest.fixture
def group(shared_cluster: LiveCluster, client: str, request: pytest.FixtureRequest) -> Iterator[LiveGroup]:
    """A group without members. After the test its members leave, and no operation may stay pending."""
    name = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)
    with LiveGroup.running(shared_cluster, client, name) as group:
        yield group
