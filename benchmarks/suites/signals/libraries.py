"""What else carries signals over Redis, each in its documented use.

- channels_redis: a group for each topic, and a channel for each wait, as a consumer of Channels has them.
  Both layers are measured: the one on publish and subscribe, and the older one, which keeps messages in
  Redis.
- broadcaster: a channel for each topic, and a subscriber for each wait, in a task that goes on.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar, Self

from broadcaster import Broadcast
from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from benchmarks.suites.signals.worker import Carrier


class Followers(Carrier):
    """A task for each wait, which stays subscribed."""

    async def __aenter__(self) -> Self:
        self._followers: dict[str, asyncio.Task[None]] = {}
        return self

    async def __aexit__(self, *exception: Any) -> None:
        for task in self._followers.values():
            task.cancel()
        await asyncio.gather(*self._followers.values(), return_exceptions=True)

    async def wait_for(self, topics: Sequence[str]) -> None:
        for topic in topics:
            if topic not in self._followers:
                subscribed = asyncio.Event()
                self._followers[topic] = asyncio.create_task(self.follow(topic, subscribed))
                await subscribed.wait()

    @abstractmethod
    async def follow(self, topic: str, subscribed: asyncio.Event) -> None: ...


class PubSubLayer(Followers):
    layer: ClassVar[Any] = RedisPubSubChannelLayer

    async def __aenter__(self) -> Self:
        self._layer = self.layer(hosts=[self.urls["redis"]])
        return await super().__aenter__()

    async def __aexit__(self, *exception: Any) -> None:
        await super().__aexit__(*exception)
        await self._layer.flush()

    async def follow(self, topic: str, subscribed: asyncio.Event) -> None:
        channel = await self._layer.new_channel()
        await self._layer.group_add(topic, channel)
        subscribed.set()
        while True:
            self.woken(topic, (await self._layer.receive(channel))["record"])

    async def send(self, topic: str, record: float) -> None:
        await self._layer.group_send(topic, {"type": "record", "record": record})


class CoreLayer(PubSubLayer):
    layer = RedisChannelLayer


class Broadcaster(Followers):
    async def __aenter__(self) -> Self:
        self._broadcast = await Broadcast(self.urls["redis"]).__aenter__()
        return await super().__aenter__()

    async def __aexit__(self, *exception: Any) -> None:
        await super().__aexit__(*exception)
        await self._broadcast.__aexit__(*exception)

    async def follow(self, topic: str, subscribed: asyncio.Event) -> None:
        async with self._broadcast.subscribe(channel=topic) as subscriber:
            subscribed.set()
            # Its annotations say that all of this may be None.
            events: AsyncIterator[Any] = aiter(subscriber)  # type: ignore[arg-type]
            async for event in events:
                self.woken(topic, float(event.message))

    async def send(self, topic: str, record: float) -> None:
        await self._broadcast.publish(channel=topic, message=repr(record))
