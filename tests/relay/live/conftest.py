"""One server of each kind for all tests of a worker, and one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

import pytest

from tests.conftest import LoopFactory
from tests.relay.live.nats_servers import NatsCluster, NatsServer
from tests.relay.live.servers import PostgresServer, RedisServer, ValkeyServer

T = TypeVar("T")


def pytest_asyncio_loop_factories() -> dict[str, LoopFactory]:
    """The tests without a server run on all loops."""
    return {"asyncio": asyncio.new_event_loop}


# pytest takes the name of a fixture from the variable.
def session_fixture(kind: Callable[[], AbstractContextManager[T]]) -> Callable[..., Iterator[T]]:
    def server() -> Iterator[T]:
        with kind() as started:
            yield started

    return pytest.fixture(scope="session")(server)


redis_server = session_fixture(RedisServer)
valkey_server = session_fixture(ValkeyServer)
postgres_server = session_fixture(PostgresServer)
nats_server = session_fixture(NatsServer)
nats_cluster = session_fixture(NatsCluster)


# The conformance suite runs on Valkey. Only the long tests look at what else it has in common with Redis.
VALKEY = pytest.param("valkey_server", marks=pytest.mark.long)


@pytest.fixture(params=["redis_server", VALKEY])
def redis_or_valkey(request: pytest.FixtureRequest) -> RedisServer:
    server: RedisServer = request.getfixturevalue(request.param)
    return server
