"""What only PostgreSQL has: signals that leave with the commit, triggers, and poolers."""

from __future__ import annotations

import re

import asyncpg
import pytest

from purgatory.relay.transports.postgres import PostgresTransport, TransactionPooler, notify
from tests.docs.programs import DOCS
from tests.free_ports import free_ports
from tests.relay.live.pairs import Served, process_on, two_processes_on, until
from tests.relay.live.servers import PgBouncer, PostgresServer
from tests.relay.processes import State


@pytest.mark.slow
async def test_a_signal_in_a_transaction_leaves_with_the_commit(postgres_server: PostgresServer) -> None:
    state = State()
    async with process_on(postgres_server, state) as waiter:
        connection = await asyncpg.connect(postgres_server.url)
        waiting = waiter.park("tea")
        transaction = connection.transaction()
        await transaction.start()
        await notify(connection, "tea")
        await transaction.rollback()
        async with connection.transaction():
            await notify(connection, "tea")
            state["tea"] += 1
        await waiting
        await until(lambda: waiter.relay.statistics().arrived)
        assert waiter.relay.statistics().arrived == 1
        await connection.close()


@pytest.mark.slow
async def test_the_trigger_of_the_documentation_signals(postgres_server: PostgresServer) -> None:
    (trigger,) = re.findall(
        r"^```{code-block} postgresql\n(.*?)^```$", (DOCS / "several-processes.md").read_text(), re.S | re.M
    )
    state = State()
    async with process_on(
        Served(lambda: PostgresTransport(postgres_server.url, prefix="app")), state
    ) as waiter:
        connection = await asyncpg.connect(postgres_server.url)
        await connection.execute("CREATE TEMPORARY TABLE jobs (id int, state text)")
        await connection.execute(trigger)
        waiting = waiter.park(("job", 3))
        state["job", 3] += 1
        await connection.execute("INSERT INTO jobs VALUES (3, 'done')")
        await waiting
        await until(lambda: waiter.relay.statistics().arrived == 1)
        await connection.close()


@pytest.mark.slow
async def test_a_pool_of_the_user_has_its_connection_back(postgres_server: PostgresServer) -> None:
    async with asyncpg.create_pool(postgres_server.url, min_size=0, max_size=1) as pool:
        async with process_on(Served(lambda: PostgresTransport(pool)), State()):
            assert pool.get_size() == 1
        assert await pool.fetchval("SELECT 1") == 1


@pytest.mark.slow
async def test_a_dsn_of_several_hosts_finds_the_primary(postgres_server: PostgresServer) -> None:
    # Nobody listens at the first one.
    hosts = f"127.0.0.1:{free_ports(1)},127.0.0.1:{postgres_server.port}"
    dsn = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=primary"
    async with two_processes_on(Served(lambda: PostgresTransport(dsn))):
        pass


@pytest.mark.slow
async def test_pgbouncer_in_transaction_mode_is_refused(postgres_server: PostgresServer) -> None:
    with PgBouncer(postgres_server, "transaction") as bouncer:
        process = process_on(Served(lambda: PostgresTransport(bouncer.url)), State())
        with pytest.raises(TransactionPooler, match="session mode"):
            await process.__aenter__()


@pytest.mark.long
async def test_pgbouncer_in_session_mode_carries_signals(postgres_server: PostgresServer) -> None:
    with PgBouncer(postgres_server, "session") as bouncer:
        async with two_processes_on(Served(lambda: PostgresTransport(bouncer.url))):
            pass
