"""Each Python client, and a topic for each test."""

import re

import pytest

from tests.examples.broker.live.clients.client_interface import Client
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.clients.python_clients import CLIENTS
from tests.examples.broker.live.live_cluster import LiveCluster


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Runs the test with each client in turn."""
    client: Client = request.param
    return client


@pytest.fixture
def topic(shared_cluster: LiveCluster, request: pytest.FixtureRequest) -> LiveTopic:
    """A new topic, named after the test."""
    return LiveTopic.create(shared_cluster, re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name))
