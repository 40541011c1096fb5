"""purgatory.relay: the record is in Redis, a signal says that it is new, and `refresh` reads it.

The signal leaves with the record, or from `Relay.signal` after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any, Self

from redis.asyncio import Redis

from benchmarks.suites.signals.carrier import Carrier
from purgatory import DelayedOperation, Purgatory
from purgatory.relay import Key, Relay
from purgatory.relay.transports.redis import RedisTransport, notify


class Relayed(Carrier):
    async def __aenter__(self) -> Self:
        self.records: dict[Key, float] = {}
        self._redis = Redis.from_url(self.url)
        self._purgatory = await Purgatory("waits").__aenter__()
        self._relay = Relay(self._purgatory, RedisTransport(self.url), refresh=self._load)
        await self._relay.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._relay.__aexit__(*exception)
        await self._purgatory.aclose(cancel_pending=True)
        await self._redis.aclose()

    async def wait_for(self, topics: Sequence[str]) -> None:
        for topic in topics:
            self._purgatory.try_complete_else_watch(Wait(self, topic), [topic])
        while self._relay.statistics().waiting:  # noqa: ASYNC110  # nobody tells when
            await asyncio.sleep(0.01)

    async def send(self, topic: str, record: float) -> None:
        async with self._redis.pipeline() as pipeline:
            pipeline.set(topic, record)
            notify(pipeline, topic)
            await pipeline.execute()

    async def _load(self, topics: Collection[Key]) -> None:
        found = await self._redis.mget(*map(str, topics))
        self.records.update(
            {topic: float(record) for topic, record in zip(topics, found, strict=True) if record}
        )


class Signalled(Relayed):
    async def send(self, topic: str, record: float) -> None:
        await self._redis.set(topic, record)
        self._relay.signal(topic)


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
