"""The shared store in PostgreSQL. A record and its signal are one transaction."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

import asyncpg

from examples.longpoll.limits import Limits
from examples.longpoll.store import PATIENCE, Excerpt, StoreUnavailable
from examples.longpoll.topics import too_many_topics, topic_key
from purgatory import PurgatoryFull
from purgatory.relay.transports.postgres import PostgresTransport, notify
from purgatory.web import Position

if TYPE_CHECKING:
    # At run time these classes take no parameter.
    from asyncpg.pool import PoolConnectionProxy

PREFIX: Final = "longpoll"

# Workers that start together wait for each other: CREATE TABLE IF NOT EXISTS is not safe against itself.
_SCHEMA: Final = """
SELECT pg_advisory_xact_lock(4711);
CREATE TABLE IF NOT EXISTS longpoll_service (
    one boolean PRIMARY KEY DEFAULT true CHECK (one), id text NOT NULL, start bigint NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS longpoll_topics (
    topic text PRIMARY KEY, next bigint NOT NULL, used timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS longpoll_records (
    topic text, "offset" bigint, record bytea NOT NULL, PRIMARY KEY (topic, "offset")
);
CREATE TABLE IF NOT EXISTS longpoll_sessions (name text PRIMARY KEY, ends timestamptz NOT NULL);
"""

_ID: Final = "INSERT INTO longpoll_service (id) VALUES ($1) ON CONFLICT DO NOTHING"

# No row for an unknown topic. The row is locked until the commit, so offsets become visible in order.
_NEXT_OFFSET: Final = """
UPDATE longpoll_topics SET next = next + 1, used = now() WHERE topic = $1 RETURNING next - 1
"""

# Those who create topics wait for each other.
_LOCK_TOPICS: Final = "SELECT FROM longpoll_service FOR UPDATE"

_COUNT_OTHERS: Final = "SELECT count(*) FROM longpoll_topics WHERE topic <> $1"

# No row when all topics are used. New topics begin behind the end of every one that was dropped.
_DROP_UNUSED: Final = """
WITH unused AS (
    DELETE FROM longpoll_topics WHERE topic = (
        SELECT topic FROM longpoll_topics WHERE used <= now() - make_interval(secs => $1)
        ORDER BY used LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING topic, next
), records AS (
    DELETE FROM longpoll_records WHERE topic IN (SELECT topic FROM unused)
)
UPDATE longpoll_service SET start = greatest(start, next + 1) FROM unused RETURNING unused.topic
"""

_CREATE: Final = """
INSERT INTO longpoll_topics AS topics (topic, next, used) SELECT $1, start + 1, now() FROM longpoll_service
ON CONFLICT (topic) DO UPDATE SET next = topics.next + 1, used = excluded.used
RETURNING topics.next - 1
"""

_APPEND: Final = 'INSERT INTO longpoll_records (topic, "offset", record) VALUES ($1, $2, $3)'

_DROP_OLDEST: Final = """
DELETE FROM longpoll_records WHERE topic = $1 AND "offset" IN (
    SELECT "offset" FROM (
        SELECT "offset", count(*) OVER latest AS records, sum(octet_length(record)) OVER latest AS bytes
        FROM longpoll_records WHERE topic = $1 WINDOW latest AS (ORDER BY "offset" DESC)
    ) AS sums WHERE records > $2 OR bytes > $3
)
"""

# A topic that is read counts as used. That is noted now and then, and not while it is locked, and so used.
_READ: Final = """
WITH used AS (
    UPDATE longpoll_topics SET used = now() WHERE topic IN (
        SELECT topic FROM longpoll_topics WHERE topic = ANY ($1) AND used < now() - make_interval(secs => $4)
        FOR UPDATE SKIP LOCKED
    )
)
SELECT wanted.topic, service.id AS log, coalesce(records."offset", next, start) AS "offset", record
FROM longpoll_service AS service
CROSS JOIN unnest($1::text[], $2::text[], $3::bigint[]) AS wanted (topic, log, first)
LEFT JOIN longpoll_topics AS topics ON topics.topic = wanted.topic
LEFT JOIN longpoll_records AS records
    ON records.topic = wanted.topic
    AND records."offset" >= CASE WHEN wanted.log = service.id THEN first ELSE 0 END
ORDER BY wanted.topic, records."offset"
"""

_END_SESSIONS: Final = "DELETE FROM longpoll_sessions WHERE ends <= now()"

# No row for a session too many.
_HEARTBEAT: Final = """
INSERT INTO longpoll_sessions (name, ends)
SELECT $1, now() + make_interval(secs => $2)
WHERE (SELECT count(*) FROM longpoll_sessions) < $3 OR EXISTS (SELECT FROM longpoll_sessions WHERE name = $1)
ON CONFLICT (name) DO UPDATE SET ends = excluded.ends
RETURNING xmax = 0 AS new
"""


class PostgresStore:
    """`Store` at a DSN such as ``postgresql://localhost/app``, in tables whose names begin with `longpoll`.

    Requests that come in the same moment may exceed the limit of sessions by a few.
    """

    signals = True

    def __init__(self, dsn: str, limits: Limits) -> None:
        self._dsn = dsn
        self._limits = limits

    def transport(self) -> PostgresTransport:
        return PostgresTransport(self._dsn, prefix=PREFIX)

    async def __aenter__(self) -> Self:
        async with _available():
            self._pool = await asyncpg.create_pool(
                self._dsn, min_size=1, max_size=5, timeout=PATIENCE, command_timeout=PATIENCE
            )
            await self._pool.execute(_SCHEMA)
            await self._pool.execute(_ID, secrets.token_hex(4))
        return self

    async def __aexit__(self, *exception: object) -> None:
        # Without waiting for a server that does not answer. No request is in progress any more.
        self._pool.terminate()

    async def append(self, topic: str, record: bytes) -> int:
        limits = self._limits
        async with _available(), self._pool.acquire() as connection, connection.transaction():
            offset: int | None = await connection.fetchval(_NEXT_OFFSET, topic)
            if offset is None:
                offset = await self._create(connection, topic)
            await connection.execute(_APPEND, topic, offset, record)
            await connection.execute(_DROP_OLDEST, topic, limits.log_records, limits.log_bytes)
            await notify(connection, topic_key(topic), prefix=PREFIX)
        return offset

    async def read(self, positions: Mapping[str, Position]) -> Collection[Excerpt]:
        logs = [position.log for position in positions.values()]
        offsets = [position.offset for position in positions.values()]
        noted = self._limits.topic_timeout / 4
        async with _available():
            rows = await self._pool.fetch(_READ, list(positions), logs, offsets, noted)
        found: dict[str, Excerpt] = {}
        records: dict[str, list[bytes]] = {topic: [] for topic in positions}
        for topic, log, offset, record in rows:
            if record is not None:
                records[topic].append(record)
            if topic not in found:
                found[topic] = Excerpt(topic, log, offset, records[topic])
        return found.values()

    async def topics(self) -> Collection[str]:
        async with _available():
            rows = await self._pool.fetch("SELECT topic FROM longpoll_topics")
        return [row["topic"] for row in rows]

    async def _create(self, connection: PoolConnectionProxy[asyncpg.Record], topic: str) -> int:
        """Make room for `topic`, and return the offset of its first record. Raises TooManyTopics."""
        limits = self._limits
        await connection.execute(_LOCK_TOPICS)
        full = await connection.fetchval(_COUNT_OTHERS, topic) >= limits.topics
        if full and await connection.fetchval(_DROP_UNUSED, limits.topic_timeout) is None:
            raise too_many_topics(limits.topics)
        offset: int = await connection.fetchval(_CREATE, topic)
        return offset

    async def online(self) -> Collection[str]:
        async with _available():
            rows = await self._pool.fetch("SELECT name FROM longpoll_sessions WHERE ends > now()")
        return [row["name"] for row in rows]

    async def heartbeat(self, name: str) -> bool:
        limits = self._limits
        async with _available():
            await self._pool.execute(_END_SESSIONS)
            new: bool | None = await self._pool.fetchval(
                _HEARTBEAT, name, limits.session_timeout, limits.sessions
            )
        if new is None:
            raise PurgatoryFull(f"there are {limits.sessions} sessions already, which is the limit")
        return new

    async def leave(self, name: str) -> bool:
        async with _available():
            left: str = await self._pool.execute("DELETE FROM longpoll_sessions WHERE name = $1", name)
        return left != "DELETE 0"


@asynccontextmanager
async def _available() -> AsyncIterator[None]:
    try:
        yield
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise StoreUnavailable(f"PostgreSQL: {str(error) or repr(error)}") from error
