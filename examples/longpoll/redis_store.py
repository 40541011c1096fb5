"""The shared store in Redis. Scripts run there one at a time, so each of them is atomic."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Self

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from examples.longpoll.limits import Limits
from examples.longpoll.store import PATIENCE, Excerpt, StoreUnavailable
from examples.longpoll.topics import too_many_topics
from purgatory import PurgatoryFull
from purgatory.relay.transports.redis import RedisTransport
from purgatory.web import Position

# A topic is a list of records, and a hash with the offset of the oldest one and the sum of their bytes. The
# sorted set of topics tells when each was used. A new topic begins at `_START`, behind all that were dropped.
_RECORDS: Final = "longpoll:records:"
_LOG: Final = "longpoll:log:"
_TOPICS: Final = "longpoll:topics"
_START: Final = "longpoll:start"
_SESSIONS: Final = "longpoll:sessions"
_ID: Final = "longpoll:id"

# -1 for a topic too many, otherwise the offset of the record.
_APPEND: Final = """
local all_records, all_logs, topics, new_start = unpack(KEYS)
local topic, record, timeout = ARGV[1], ARGV[2], tonumber(ARGV[6])
local most_topics, most_records, most_bytes = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local records, log = all_records .. topic, all_logs .. topic
local now = redis.call('TIME')
now = now[1] + now[2] / 1e6
if not redis.call('ZSCORE', topics, topic) then
    if redis.call('ZCARD', topics) >= most_topics then
        local unused = redis.call('ZRANGEBYSCORE', topics, '-inf', now - timeout, 'LIMIT', 0, 1)[1]
        if not unused then return -1 end
        local old_records, old_log = all_records .. unused, all_logs .. unused
        local stop = redis.call('HGET', old_log, 'start') + redis.call('LLEN', old_records)
        redis.call('SET', new_start, math.max(redis.call('GET', new_start) or 0, stop + 1))
        redis.call('DEL', old_records, old_log)
        redis.call('ZREM', topics, unused)
    end
    redis.call('HSET', log, 'start', redis.call('GET', new_start) or 0)
end
redis.call('ZADD', topics, now, topic)
local count = redis.call('RPUSH', records, record)
local bytes = redis.call('HINCRBY', log, 'bytes', #record)
local start = redis.call('HINCRBY', log, 'start', 0)
while count > most_records or bytes > most_bytes do
    bytes = redis.call('HINCRBY', log, 'bytes', -#redis.call('LPOP', records))
    start = redis.call('HINCRBY', log, 'start', 1)
    count = count - 1
end
return start + count - 1
"""

# The id of the log, the offset of the first record, and the records. A flushed store gets another id.
_READ: Final = """
local records, log, id, topics, new_start = unpack(KEYS)
local known, offset, new, topic = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
redis.call('SET', id, new, 'NX')
local present = redis.call('GET', id)
local now = redis.call('TIME')
redis.call('ZADD', topics, 'XX', now[1] + now[2] / 1e6, topic)
local start = tonumber(redis.call('HGET', log, 'start') or redis.call('GET', new_start) or 0)
local first = present == known and math.max(offset, start) or start
return {present, first, redis.call('LRANGE', records, first - start, -1)}
"""

# -1 for a session too many, 1 for a new one, otherwise 0.
_HEARTBEAT: Final = """
local name, timeout, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now = redis.call('TIME')
now = now[1] + now[2] / 1e6
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if not redis.call('ZSCORE', KEYS[1], name) and redis.call('ZCARD', KEYS[1]) >= most then return -1 end
return redis.call('ZADD', KEYS[1], now + timeout, name)
"""

_ONLINE: Final = """
local now = redis.call('TIME')
return redis.call('ZRANGEBYSCORE', KEYS[1], now[1] + now[2] / 1e6, '+inf')
"""


class RedisStore:
    """`Store` at a URL such as ``redis://localhost:6379``."""

    # Its caller does, when the record is stored.
    signals = False

    def __init__(self, url: str, limits: Limits) -> None:
        self._url = url
        self._limits = limits
        # Without retries: a record whose answer was lost would be appended twice.
        self._client = Redis.from_url(
            url, retry=Retry(NoBackoff(), 0), socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE
        )

    def transport(self) -> RedisTransport:
        return RedisTransport(self._url, prefix="longpoll")

    async def __aenter__(self) -> Self:
        async with _available():
            await self._client.ping()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._client.aclose()

    async def append(self, topic: str, record: bytes) -> int:
        limits = self._limits
        async with _available():
            keys = _RECORDS, _LOG, _TOPICS, _START
            most = limits.topics, limits.log_records, limits.log_bytes, limits.topic_timeout
            offset = int(await self._client.eval(_APPEND, len(keys), *keys, topic, record, *most))
        if offset < 0:
            raise too_many_topics(limits.topics)
        return offset

    async def read(self, positions: Mapping[str, Position]) -> Collection[Excerpt]:
        async with _available(), self._client.pipeline(transaction=False) as pipeline:
            for topic, position in positions.items():
                keys = _RECORDS + topic, _LOG + topic, _ID, _TOPICS, _START
                known = position.log, position.offset
                pipeline.eval(_READ, len(keys), *keys, *known, secrets.token_hex(4), topic)
            answers: list[Any] = await pipeline.execute()
        return [
            Excerpt(topic, log.decode(), offset, records)
            for topic, (log, offset, records) in zip(positions, answers, strict=True)
        ]

    async def topics(self) -> Collection[str]:
        async with _available():
            topics: list[Any] = await self._client.zrange(_TOPICS, 0, -1)
        return [topic.decode() for topic in topics]

    async def online(self) -> Collection[str]:
        async with _available():
            return [name.decode() for name in await self._client.eval(_ONLINE, 1, _SESSIONS)]

    async def heartbeat(self, name: str) -> bool:
        async with _available():
            most = self._limits.session_timeout, self._limits.sessions
            added = int(await self._client.eval(_HEARTBEAT, 1, _SESSIONS, name, *most))
        if added < 0:
            raise PurgatoryFull(f"there are {self._limits.sessions} sessions already, which is the limit")
        return added == 1

    async def leave(self, name: str) -> bool:
        async with _available():
            return bool(await self._client.zrem(_SESSIONS, name))


@asynccontextmanager
async def _available() -> AsyncIterator[None]:
    try:
        yield
    except (OSError, RedisError) as error:
        # The repr of redis-py's errors lacks their text.
        raise StoreUnavailable(f"Redis: {str(error) or repr(error)}") from error
