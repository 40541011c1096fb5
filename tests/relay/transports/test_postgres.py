"""The transport for PostgreSQL, on a connection that the test holds in its hands."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from purgatory.relay.texts import read
from purgatory.relay.transport import Publication
from purgatory.relay.transports.postgres import PostgresTransport, TransactionPooler, notify
from tests.relay.transports.heard import running

DSN = "postgresql://localhost/app"


class FakeSession:
    """A connection of asyncpg. `process` is the server's process, and `told` the one that clients hear of."""

    def __init__(self, process: int = 1, told: int = 1) -> None:
        self.process, self.told = process, told
        self.listeners: dict[str, Callable[..., object]] = {}
        self.ended: list[Callable[..., object]] = []
        self.executed: list[tuple[Any, ...]] = []
        self.terminated = False
        self.failure: Exception | None = None

    def add_termination_listener(self, callback: Callable[..., object]) -> None:
        self.ended.append(callback)

    async def add_listener(self, channel: str, callback: Callable[..., object]) -> None:
        self.listeners[channel] = callback

    def get_server_pid(self) -> int:
        return self.told

    async def fetchval(self, query: str) -> int:
        assert query == "SELECT pg_backend_pid()"
        if self.failure is not None:
            raise self.failure
        return self.process

    async def execute(self, *query: Any) -> None:
        self.executed.append(query)

    def is_in_transaction(self) -> bool:
        return True

    def terminate(self) -> None:
        self.terminated = True

    def notify(self, channel: str, text: str) -> None:
        self.listeners[channel](self, self.process, channel, text)

    def end(self) -> None:
        for callback in self.ended:
            callback(self)


class Database:
    """Hands out connections, in the order of the list."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connections: list[FakeSession] = []
        self.opened: list[FakeSession] = []
        monkeypatch.setattr(asyncpg, "connect", self.connect)

    async def connect(self, dsn: str) -> FakeSession:
        assert dsn == DSN
        self.opened.append(self.connections.pop(0))
        return self.opened[-1]


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    return Database(monkeypatch)


# Messages


async def test_nothing_is_handed_over_after_the_end(database: Database) -> None:
    database.connections = [FakeSession()]
    async with running(PostgresTransport(DSN)) as heard:
        pass
    database.opened[0].notify("purgatory", "late")
    assert heard.texts == []


async def test_all_publications_go_out_in_one_statement(database: Database) -> None:
    database.connections = [FakeSession()]
    transport = PostgresTransport(DSN, prefix="app")
    async with running(transport):
        await transport.publish([Publication("00", "a"), Publication("01", "b")])
    (statement,) = database.opened[0].executed
    assert statement[1:] == ("app", ["a", "b"])


# Connections


async def test_a_connection_that_its_pool_has_back_already_is_no_error(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def terminate() -> None:
        raise asyncpg.InterfaceError("connection has been released back to the pool")

    database.connections = [connection := FakeSession()]
    monkeypatch.setattr(connection, "terminate", terminate)
    async with running(PostgresTransport(DSN)):
        pass


async def test_a_pool_lends_one_connection(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async def acquire(_: object) -> FakeSession:
        return await database.connect(DSN)

    monkeypatch.setattr(asyncpg.Pool, "acquire", acquire)
    database.connections = [FakeSession()]
    async with running(PostgresTransport(asyncpg.create_pool(DSN))):
        assert not database.opened[0].terminated
    assert database.opened[0].terminated


# Poolers


async def test_a_pooler_that_gives_both_sessions_one_connection_is_refused(database: Database) -> None:
    database.connections = [FakeSession(process=7, told=-1), FakeSession(process=7, told=-2)]
    with pytest.RaisesGroup(pytest.RaisesExc(TransactionPooler, match="session mode")):
        async with running(PostgresTransport(DSN)):
            pass
    assert [connection.terminated for connection in database.opened] == [True, True]
    # It was noticed without waiting for a notification.
    assert database.opened[0].listeners == {}


@pytest.mark.usefixtures("virtual_time")
async def test_a_pooler_that_swallows_notifications_is_refused(database: Database) -> None:
    database.connections = [FakeSession(process=7, told=-1), FakeSession(process=8, told=-2)]
    with pytest.RaisesGroup(TransactionPooler):
        async with running(PostgresTransport(DSN)):
            pass


async def test_a_pooler_whose_sessions_share_prepared_statements_is_refused(database: Database) -> None:
    database.connections = [FakeSession(told=-1)]
    database.connections[0].failure = asyncpg.DuplicatePreparedStatementError("it exists")
    with pytest.RaisesGroup(TransactionPooler):
        async with running(PostgresTransport(DSN)):
            pass


async def test_a_pooler_that_lets_notifications_through_is_accepted(database: Database) -> None:
    first, second = FakeSession(process=7, told=-1), FakeSession(process=8, told=-2)

    async def pg_notify(_: str, channel: str, texts: list[str]) -> None:
        first.notify(channel, texts[0])

    second.execute = pg_notify  # type: ignore[method-assign]  # what the server does
    database.connections = [first, second]
    async with running(PostgresTransport(DSN)):
        assert second.terminated
        assert first.executed == [("UNLISTEN *",)]
        assert "purgatory" in first.listeners
    assert first.terminated


# In the transaction of the caller


async def test_keys_are_signalled_in_one_statement_of_the_caller() -> None:
    connection = FakeSession()
    await notify(connection, "tea", ("job", 3), prefix="app")  # type: ignore[arg-type]  # a fake
    ((_, channel, texts),) = connection.executed
    assert channel == "app"
    assert [read(text).keys for text in texts] == [["tea", ("job", 3)]]


async def test_many_keys_take_several_messages_of_less_than_8000_bytes() -> None:
    connection = FakeSession()
    keys = [f"key {number}" for number in range(2_000)]
    await notify(connection, *keys)  # type: ignore[arg-type]  # a fake
    ((_, _, texts),) = connection.executed
    assert [key for text in texts for key in read(text).keys] == keys
    assert max(map(len, texts)) < 8_000


async def test_a_key_that_is_too_long_is_signalled_by_its_shard() -> None:
    connection = FakeSession()
    await notify(connection, "a" * 8_000)  # type: ignore[arg-type]  # a fake
    ((_, _, (text,)),) = connection.executed
    assert json.loads(text).keys() == {"from", "shard"}


# Mistakes


@pytest.mark.parametrize("prefix", ["", "é" * 32])
def test_a_prefix_that_is_no_name_of_a_channel_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="1 to 63 bytes"):
        PostgresTransport(DSN, prefix=prefix)


async def test_a_driver_in_the_scheme_is_left_out(database: Database) -> None:
    database.connections = [FakeSession()]
    async with running(PostgresTransport(DSN.replace("://", "+asyncpg://"))):
        pass


def test_a_parameter_that_is_sqlalchemys_is_refused() -> None:
    with pytest.raises(ValueError, match="write sslmode="):
        PostgresTransport("postgresql+asyncpg://localhost/app?x=1&ssl=require")


async def test_a_connection_that_is_not_asyncpgs_is_refused() -> None:
    class AsyncConnection:
        async def execute(self, *query: Any) -> None:
            raise AssertionError("it is not asked")

    with pytest.raises(TypeError, match=r"not AsyncConnection: with SQLAlchemy .* signal_text"):
        await notify(AsyncConnection(), "tea")  # type: ignore[arg-type]  # the mistake under test


async def test_a_pool_is_refused_because_its_connections_are_not_in_the_transaction_of_the_caller() -> None:
    with pytest.raises(TypeError, match="takes the connection of asyncpg that writes, not Pool"):
        await notify(asyncpg.create_pool(DSN), "tea")  # type: ignore[arg-type]  # the mistake under test


def test_what_is_neither_a_dsn_nor_a_pool_is_refused() -> None:
    with pytest.raises(TypeError, match=r"asyncpg\.Pool, not NoneType: .*render_as_string"):
        PostgresTransport(None)  # type: ignore[arg-type]  # the mistake under test
