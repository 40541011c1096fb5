"""The store of several workers, in PostgreSQL. A change and its signal are one transaction."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

import asyncpg

from examples.longpoll.store import (
    KEPT,
    PEOPLE_KEY,
    SESSION_TIMEOUT,
    TOPICS,
    Excerpt,
    StoreUnavailable,
    TooManyTopics,
)
from purgatory.relay.transports.postgres import PostgresTransport, notify
from purgatory.web import Position

if TYPE_CHECKING:
    # At run time these classes take no parameter.
    from asyncpg.pool import PoolConnectionProxy

PREFIX: Final = "longpoll"

PATIENCE: Final = 5.0
"""Seconds that a request of the server may take."""

# Workers that start together wait for each other: CREATE TABLE IF NOT EXISTS is not safe against itself.
_SCHEMA: Final = """
SELECT pg_advisory_xact_lock(4711);
CREATE TABLE IF NOT EXISTS longpoll_topics (topic text PRIMARY KEY, log text NOT NULL, next bigint NOT NULL);
CREATE TABLE IF NOT EXISTS longpoll_records (
    topic text, "offset" bigint, record bytea NOT NULL, PRIMARY KEY (topic, "offset")
);
CREATE TABLE IF NOT EXISTS longpoll_sessions (name text PRIMARY KEY, ends timestamptz NOT NULL);
"""

# The row is locked until the commit, so records become visible in the order of their offsets. There is no row
# for a topic too many.
_NEXT_OFFSET: Final = """
INSERT INTO longpoll_topics AS topics (topic, log, next)
SELECT $1, $2, 1
WHERE (SELECT count(*) FROM longpoll_topics) < $3 OR EXISTS (SELECT FROM longpoll_topics WHERE topic = $1)
ON CONFLICT (topic) DO UPDATE SET next = topics.next + 1
RETURNING next - 1
"""

_APPEND: Final = 'INSERT INTO longpoll_records (topic, "offset", record) VALUES ($1, $2, $3)'

_DROP_OLDEST: Final = 'DELETE FROM longpoll_records WHERE topic = $1 AND "offset" <= $2'

_READ: Final = """
SELECT topic, topics.log, "offset", record
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS wanted (topic, log, first)
JOIN longpoll_topics AS topics USING (topic)
JOIN longpoll_records AS records USING (topic)
WHERE wanted.log <> topics.log OR "offset" >= first
ORDER BY topic, "offset"
"""

_ONLINE: Final = "SELECT name FROM longpoll_sessions WHERE ends > now()"

_END_SESSIONS: Final = "DELETE FROM longpoll_sessions WHERE ends <= now()"

_HEARTBEAT: Final = """
INSERT INTO longpoll_sessions (name, ends) VALUES ($1, now() + make_interval(secs => $2))
ON CONFLICT (name) DO UPDATE SET ends = excluded.ends
RETURNING xmax = 0 AS new
"""

_LEAVE: Final = "DELETE FROM longpoll_sessions WHERE name = $1"


class PostgresStore:
    """`Store` at a DSN such as ``postgresql://localhost/app``. Its tables have the prefix `longpoll`."""

    signals = True

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def transport(self) -> PostgresTransport:
        return PostgresTransport(self._dsn, prefix=PREFIX)

    async def __aenter__(self) -> Self:
        async with _available():
            self._pool = await asyncpg.create_pool(
                self._dsn, min_size=1, max_size=5, timeout=PATIENCE, command_timeout=PATIENCE
            )
            await self._pool.execute(_SCHEMA)
        return self

    async def __aexit__(self, *exception: object) -> None:
        # Without waiting for a server that does not answer. No request is in progress any more.
        self._pool.terminate()

    async def append(self, topic: str, record: bytes) -> int:
        async with self._transaction() as connection:
            offset: int | None = await connection.fetchval(_NEXT_OFFSET, topic, secrets.token_hex(4), TOPICS)
            if offset is None:
                raise TooManyTopics
            await connection.execute(_APPEND, topic, offset, record)
            await connection.execute(_DROP_OLDEST, topic, offset - KEPT)
            await notify(connection, topic, prefix=PREFIX)
        return offset

    async def read(self, positions: Mapping[str, Position]) -> Mapping[str, Excerpt]:
        logs = [position.log for position in positions.values()]
        offsets = [position.offset for position in positions.values()]
        records: dict[str, list[bytes]] = {topic: [] for topic in positions}
        excerpts: dict[str, Excerpt] = {}
        async with _available():
            rows = await self._pool.fetch(_READ, list(positions), logs, offsets)
        for topic, log, offset, record in rows:
            records[topic].append(record)
            excerpts.setdefault(topic, Excerpt(log, offset, records[topic]))
        return excerpts

    async def online(self) -> Collection[str]:
        async with _available():
            rows = await self._pool.fetch(_ONLINE)
        return [row["name"] for row in rows]

    async def heartbeat(self, name: str) -> bool:
        async with self._transaction() as connection:
            await connection.execute(_END_SESSIONS)
            new: bool = await connection.fetchval(_HEARTBEAT, name, SESSION_TIMEOUT)
            if new:
                await notify(connection, PEOPLE_KEY, prefix=PREFIX)
        return new

    async def leave(self, name: str) -> None:
        async with self._transaction() as connection:
            await connection.execute(_LEAVE, name)
            await notify(connection, PEOPLE_KEY, prefix=PREFIX)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[PoolConnectionProxy[asyncpg.Record]]:
        async with _available(), self._pool.acquire() as connection, connection.transaction():
            yield connection


@asynccontextmanager
async def _available() -> AsyncIterator[None]:
    try:
        yield
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise StoreUnavailable(f"PostgreSQL: {str(error) or repr(error)}") from error
