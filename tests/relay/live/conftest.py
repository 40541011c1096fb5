"""One server of each kind for all tests of a worker, and one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.conftest import LoopFactory
from tests.relay.live.servers import PostgresServer, RedisServer, TransportServer, ValkeyServer


def pytest_asyncio_loop_factories() -> dict[str, LoopFactory]:
    """The tests without a server run on all loops."""
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


# What Redis carries, Valkey does, too. The long tests check that.
VALKEY = pytest.param("valkey_server", marks=pytest.mark.long)


@pytest.fixture(params=["redis_server", VALKEY])
def redis_or_valkey(request: pytest.FixtureRequest) -> RedisServer:
    server: RedisServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture(params=["redis_server", VALKEY, "postgres_server"])
def server(request: pytest.FixtureRequest) -> TransportServer:
    """Each of the servers that a transport runs on."""
    server: TransportServer = request.getfixturevalue(request.param)
    return server
