"""purgatory.relay: the record is in a database, a signal says that it is new, and `refresh` reads it.

The signal leaves with the record, or from `Relay.signal` after that.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

import asyncpg
from redis.asyncio import Redis

from benchmarks.suites.signals.worker import Carrier
from purgatory import DelayedOperation, Purgatory
from purgatory.relay import Key, Relay, Transport
from purgatory.relay.transports import postgres, redis
from purgatory.relay.transports.nats import NatsTransport


class Relayed(Carrier):
    """A relay. A subclass knows the database."""

    async def __aenter__(self) -> Self:
        self.records: dict[Key, float] = {}
        await self.open()
        self._purgatory = await Purgatory("waits").__aenter__()
        self.relay = Relay(self._purgatory, self.transport(), refresh=self._load)
        await self.relay.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self.relay.__aexit__(*exception)
        await self._purgatory.aclose(cancel_pending=True)
        await self.close()

    async def wait_for(self, topics: Sequence[str]) -> None:
        for topic in topics:
            self._purgatory.try_complete_else_watch(Wait(self, topic), [topic])
        while self.relay.statistics().waiting:  # noqa: ASYNC110  # nobody tells when
            await asyncio.sleep(0.01)

    async def _load(self, topics: Collection[Key]) -> None:
        self.records.update(await self.read(list(map(str, topics))))

    @abstractmethod
    async def open(self) -> None:
        """Connect to the database."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def transport(self) -> Transport: ...

    @abstractmethod
    async def read(self, topics: Sequence[str]) -> Mapping[str, float]:
        """The records of `topics`."""


class OverRedis(Relayed):
    async def open(self) -> None:
        self._redis = Redis.from_url(self.urls["redis"])

    async def close(self) -> None:
        await self._redis.aclose()

    def transport(self) -> Transport:
        return redis.RedisTransport(self.urls["redis"])

    async def read(self, topics: Sequence[str]) -> Mapping[str, float]:
        found = await self._redis.mget(*topics)
        return {topic: float(record) for topic, record in zip(topics, found, strict=True) if record}

    async def send(self, topic: str, record: float) -> None:
        async with self._redis.pipeline() as pipeline:
            pipeline.set(topic, record)
            redis.notify(pipeline, topic)
            await pipeline.execute()


class OverRedisAfterwards(OverRedis):
    async def send(self, topic: str, record: float) -> None:
        await self._redis.set(topic, record)
        self.relay.signal(topic)


class OverNats(OverRedisAfterwards):
    def transport(self) -> Transport:
        return NatsTransport(self.urls["nats"])


WRITE = "INSERT INTO records VALUES ($1, $2) ON CONFLICT (topic) DO UPDATE SET record = excluded.record"
READ = "SELECT topic, record FROM records WHERE topic = ANY($1::text[])"


class OverPostgres(Relayed):
    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(self.urls["postgres"], min_size=2, max_size=5)

    async def close(self) -> None:
        self._pool.terminate()

    def transport(self) -> Transport:
        return postgres.PostgresTransport(self.urls["postgres"])

    async def read(self, topics: Sequence[str]) -> Mapping[str, float]:
        return {row["topic"]: row["record"] for row in await self._pool.fetch(READ, topics)}

    async def send(self, topic: str, record: float) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(WRITE, topic, record)
            await postgres.notify(connection, topic)


class OverPostgresAfterwards(OverPostgres):
    async def send(self, topic: str, record: float) -> None:
        await self._pool.execute(WRITE, topic, record)
        self.relay.signal(topic)


class Wait(DelayedOperation[None]):
    """Waits for a later record than the one that is known."""

    __slots__ = ("carrier", "seen", "topic")

    def __init__(self, carrier: Relayed, topic: str) -> None:
        super().__init__(None)
        self.carrier, self.topic = carrier, topic
        self.seen = carrier.records.get(topic, 0.0)

    def try_complete(self) -> bool:
        return self.carrier.records.get(self.topic, 0.0) > self.seen and self.force_complete()

    def on_complete(self) -> None:
        self.carrier.woken(self.topic, self.carrier.records[self.topic])
