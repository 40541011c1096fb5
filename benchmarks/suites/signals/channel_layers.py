"""channels_redis: a group for each topic, and a channel for each wait, as a consumer of Channels has them.

Both layers are measured: the one on publish and subscribe, and the older one, which keeps messages in Redis.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from benchmarks.suites.signals.carrier import Carrier


class PubSubLayer(Carrier):
    layer: ClassVar[Any] = RedisPubSubChannelLayer

    async def __aenter__(self) -> Self:
        self._consumers: dict[str, asyncio.Task[None]] = {}
        self._layer = self.layer(hosts=[self.urls["redis"]])
        return self

    async def __aexit__(self, *exception: Any) -> None:
        for task in self._consumers.values():
            task.cancel()
        await asyncio.gather(*self._consumers.values(), return_exceptions=True)
        await self._layer.flush()

    async def wait_for(self, topics: Sequence[str]) -> None:
        for topic in topics:
            if topic not in self._consumers:
                channel = await self._layer.new_channel()
                await self._layer.group_add(topic, channel)
                self._consumers[topic] = asyncio.create_task(self._follow(topic, channel))

    async def send(self, topic: str, record: float) -> None:
        await self._layer.group_send(topic, {"type": "record", "record": record})

    async def _follow(self, topic: str, channel: str) -> None:
        while True:
            message = await self._layer.receive(channel)
            self.woken(topic, message["record"])


class CoreLayer(PubSubLayer):
    layer = RedisChannelLayer
