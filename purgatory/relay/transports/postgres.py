"""The transport for PostgreSQL: LISTEN and NOTIFY."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, final

import anyio
import asyncpg
from anyio.abc import TaskStatus

from purgatory.errors import PurgatoryError
from purgatory.relay.keys import Key, encoded, shard_of
from purgatory.relay.texts import keys_texts, shard_text
from purgatory.relay.transport import Publication, Receiver

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]

__all__ = ["PostgresTransport", "TransactionPooler", "notify"]

# NOTIFY takes payloads of less than 8,000 bytes, and names of channels of less than 64.
_MAX_BYTES: Final = 7_999
_MAX_NAME: Final = 63

_NOTIFY: Final = "SELECT pg_notify($1, text) FROM unnest($2::text[]) AS text"
_PROCESS: Final = "SELECT pg_backend_pid()"

# SQLAlchemy's URLs name the driver, as in postgresql+asyncpg://. The rest is a DSN.
_DRIVER: Final = re.compile(r"^(postgres(?:ql)?)\+\w+(?=://)")
# SQLAlchemy hands this parameter to asyncpg.connect. In a DSN, asyncpg would send it to the server.
_SSL: Final = re.compile(r"[?&]ssl=")

# Seconds. A notification takes milliseconds.
_PATIENCE: Final = 2.0


class TransactionPooler(PurgatoryError):
    """Raised when a pooler between this process and PostgreSQL keeps notifications from arriving."""


@final
class PostgresTransport:
    """Carries signals over PostgreSQL's LISTEN and NOTIFY (extra `postgres`).

    `server` is a DSN such as ``postgresql://localhost/app``, or an `asyncpg.Pool`. A URL of SQLAlchemy's,
    such as ``postgresql+asyncpg://localhost/app``, is a DSN, too. A pool that you pass stays open. One
    connection of the pool is in use as long as the relay is open. Behind pgbouncer, connecting takes a second
    one for a moment. All signals go over this connection, on one channel, whose name is `prefix`. Give each
    application its own.

    The best way to signal is `notify`, in the transaction that writes: the signal leaves at the commit.

    **NOTIFY serialises commits.** A transaction that notifies takes a lock of the whole server when it
    commits, and holds the lock until the commit is on disk. So transactions that notify commit one at a time
    (https://www.recall.ai/blog/postgres-listen-notify-does-not-scale). The transport's own statements write
    nothing else, so they wait for no disk, and each process makes one at a time.

    The connection must be a session of its own. Behind pgbouncer in transaction mode, where each transaction
    may have another connection to the server, no notification would arrive: `run` raises TransactionPooler
    then. pgbouncer in session mode is fine, and so is a second, direct address.

    Raises TypeError for a `server` that is neither a DSN nor a pool. Raises ValueError for a DSN that has
    ``ssl=`` in place of ``sslmode=``, and for a prefix that is empty or longer than 63 bytes.
    """

    max_bytes: int = _MAX_BYTES

    def __init__(self, server: str | asyncpg.Pool[asyncpg.Record], *, prefix: str = "purgatory") -> None:
        if isinstance(server, str):
            self._server: str | asyncpg.Pool[asyncpg.Record] = _dsn(server)
        elif isinstance(server, asyncpg.Pool):
            self._server = server
        else:
            raise TypeError(
                f"server must be a DSN or an asyncpg.Pool, not {type(server).__name__}: of an engine of "
                "SQLAlchemy's, pass engine.url.render_as_string(hide_password=False)"
            )
        self._channel = _checked(prefix)
        self._connection: Connection | None = None

    def __repr__(self) -> str:
        state = "connected" if self._connection is not None else "not connected"
        return f"<PostgresTransport {self._channel!r} {state}>"

    async def run(self, receiver: Receiver, *, task_status: TaskStatus[None]) -> NoReturn:
        async with self._session() as connection:
            lost = asyncio.Event()
            connection.add_termination_listener(lambda _: lost.set())

            def heard(_connection: Connection, _process: int, _channel: str, text: object) -> None:
                # asyncpg delivers what it has read before the end also after it.
                if self._connection is connection:
                    receiver.received(str(text))

            await self._refuse_transaction_pooler(connection)
            await connection.add_listener(self._channel, heard)
            self._connection = connection
            try:
                task_status.started()
                await lost.wait()
            finally:
                self._connection = None
        raise ConnectionError("PostgreSQL has ended the connection")

    async def subscribe(self, channels: Sequence[str]) -> None:
        self._connected()

    async def unsubscribe(self, channels: Sequence[str]) -> None:
        self._connected()

    async def publish(self, publications: Sequence[Publication]) -> None:
        await self._connected().execute(_NOTIFY, self._channel, [text for _, text in publications])

    async def aclose(self) -> None:
        """There is nothing to close: `run` has ended its connection."""

    def _connected(self) -> Connection:
        if self._connection is None:
            raise ConnectionError("there is no connection to PostgreSQL")
        return self._connection

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Connection]:
        """A connection that ends with the block."""
        if isinstance(self._server, str):
            connection: Connection = await asyncpg.connect(self._server)
        else:
            connection = await self._server.acquire()
        try:
            yield connection
        finally:
            # Without waiting, because the server may be dead. A pool then knows that it has the connection
            # back. When the connection was lost, the pool knows it already, and this raises.
            with suppress(asyncpg.InterfaceError):
                connection.terminate()

    async def _refuse_transaction_pooler(self, connection: Connection) -> None:
        """Raise if notifications of others do not arrive on `connection`.

        pgbouncer gives its clients a process id of its own making
        (https://github.com/pgbouncer/pgbouncer/issues/1296). Only then there is a second session, which sends
        a notification. One that the connection sends itself proves nothing: it comes back with the answer.
        """
        try:
            process = await connection.fetchval(_PROCESS)
            if process == connection.get_server_pid() or await self._reached(connection, process):
                return
        except (asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError):
            # Sessions that share a connection to the server also share its prepared statements.
            pass
        raise TransactionPooler(
            "notifications do not arrive, because a pooler such as pgbouncer in transaction mode is between "
            "this process and PostgreSQL: connect to PostgreSQL itself, or to a pooler in session mode"
        )

    async def _reached(self, connection: Connection, process: int) -> bool:
        """Whether a notification of a second session arrives."""
        channel, arrived = f"purgatory_{secrets.token_hex(8)}", asyncio.Event()
        async with self._session() as other:
            if await other.fetchval(_PROCESS) == process:
                return False
            await connection.add_listener(channel, lambda *_: arrived.set())
            await other.execute(_NOTIFY, channel, [""])
            with anyio.move_on_after(_PATIENCE):
                await arrived.wait()
        # It raises if the connection was lost meanwhile.
        await connection.execute("UNLISTEN *")
        return arrived.is_set()


async def notify(connection: Connection, *keys: Key, prefix: str = "purgatory") -> None:
    """Signal `keys` in the present transaction of `connection`: the signal leaves when it commits.

    So nobody hears of a write that was rolled back, and a write that is committed always has its signal, also
    when this process dies at once. Every relay whose transport has the same `prefix` hears the signal, the
    relay of this process, too. The cost is one statement. The commit waits for other transactions that
    notify: see `PostgresTransport`.

    Raises TypeError or ValueError for a key that has no encoding, and TypeError for a connection that is not
    asyncpg's. From SQL, with SQLAlchemy, and with other drivers, use ``SELECT pg_notify('purgatory', text)``,
    where `purgatory.relay.signal_text` writes the text. It must be shorter than 8,000 bytes.
    """
    # What stands for a connection of asyncpg, such as that of a pool, need not be an instance of its class.
    if not hasattr(connection, "is_in_transaction"):
        raise TypeError(
            f"notify() takes the connection of asyncpg that writes, not {type(connection).__name__}: with "
            "SQLAlchemy and other drivers, execute SELECT pg_notify(prefix, text) there, where signal_text() "
            "writes the text"
        )
    texts = [encoded(key) for key in keys]
    # A key that is too long for a notification is signalled by its shard.
    payloads = keys_texts("", texts, _MAX_BYTES) or [shard_text("", shard_of(text)) for text in texts]
    await connection.execute(_NOTIFY, _checked(prefix), payloads)


def _dsn(url: str) -> str:
    if _SSL.search(url):
        raise ValueError("ssl= is a parameter of SQLAlchemy's: in a DSN, write sslmode=")
    return _DRIVER.sub(r"\1", url)


def _checked(prefix: str) -> str:
    size = len(prefix.encode())
    if not 0 < size <= _MAX_NAME:
        raise ValueError(f"a prefix of PostgreSQL's must have 1 to {_MAX_NAME} bytes, not {size}")
    return prefix
