"""Each documented way to connect to PostgreSQL, and what entering a relay says when one of them fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from purgatory.relay.transports.postgres import PostgresTransport
from tests.relay.live.pairs import SHORT, Served, process_on, signals_go_over
from tests.relay.live.servers import PostgresServer, self_signed
from tests.relay.processes import State

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+asyncpg"])
async def test_over_a_dsn(postgres_server: PostgresServer, scheme: str) -> None:
    dsn = postgres_server.url.replace("postgresql", scheme, 1)
    await signals_go_over(PostgresTransport(dsn), PostgresTransport(dsn))


async def test_over_a_pool(postgres_server: PostgresServer) -> None:
    async with asyncpg.create_pool(postgres_server.url, min_size=0, max_size=2) as pool:
        await signals_go_over(PostgresTransport(pool), PostgresTransport(pool))


async def test_a_pool_without_a_free_connection_is_named_as_a_possible_cause(
    postgres_server: PostgresServer,
) -> None:
    async with asyncpg.create_pool(postgres_server.url, min_size=0, max_size=1) as pool, pool.acquire():
        with pytest.raises(TimeoutError, match=r"check .* whether the pool has a free connection"):
            async with process_on(Served(lambda: PostgresTransport(pool)), State(), SHORT):
                pass


async def test_over_a_dsn_with_tls() -> None:
    server = PostgresServer(
        *("-c", "ssl=on", "-c", "ssl_cert_file=../certificate.pem", "-c", "ssl_key_file=../key.pem")
    )
    certificate = self_signed(server.directory)
    with server:
        dsn = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
        dsn += f"?sslmode=verify-full&sslrootcert={certificate}"
        await signals_go_over(PostgresTransport(dsn), PostgresTransport(dsn))


@asynccontextmanager
async def postgres_user(server: PostgresServer) -> AsyncIterator[str]:
    """The DSN of a user without any rights of its own."""
    connection = await asyncpg.connect(server.url)
    await connection.execute("CREATE ROLE app LOGIN")
    try:
        yield server.url.replace("postgres@", "app@")
    finally:
        await connection.execute("DROP ROLE app")
        await connection.close()


async def test_as_a_user_of_postgresql_without_any_rights(postgres_server: PostgresServer) -> None:
    async with postgres_user(postgres_server) as dsn:
        await signals_go_over(PostgresTransport(dsn), PostgresTransport(dsn))


async def test_a_user_of_postgresql_who_may_not_notify_is_refused_on_entering(
    postgres_server: PostgresServer,
) -> None:
    async with postgres_user(postgres_server) as dsn:
        connection = await asyncpg.connect(postgres_server.url)
        await connection.execute("REVOKE EXECUTE ON FUNCTION pg_notify FROM PUBLIC")
        try:
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="function pg_notify"):
                async with process_on(Served(lambda: PostgresTransport(dsn)), State()):
                    pass
        finally:
            await connection.execute("GRANT EXECUTE ON FUNCTION pg_notify TO PUBLIC")
            await connection.close()
