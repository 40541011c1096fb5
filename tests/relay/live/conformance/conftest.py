"""All that carries signals: these tests know no more of it than its faults."""

from __future__ import annotations

import pytest

from tests.relay.live.conformance.faulty_server import FaultyServer
from tests.relay.live.in_process_server import InProcessServer


@pytest.fixture(scope="session")
def in_process_server() -> InProcessServer:
    return InProcessServer()


SERVERS = ["in_process_server", "redis_server", "valkey_server", "postgres_server", "nats_server"]


@pytest.fixture(params=SERVERS)
def single_server(request: pytest.FixtureRequest) -> FaultyServer:
    server: FaultyServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture(params=[*SERVERS, "nats_cluster"])
def server(request: pytest.FixtureRequest) -> FaultyServer:
    server: FaultyServer = request.getfixturevalue(request.param)
    return server
