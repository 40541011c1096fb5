"""broadcaster: a channel for each topic, and a subscriber for each wait.

As its README has it: ``async with broadcast.subscribe(channel=...) as subscriber``, in a task that goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self

from broadcaster import Broadcast

from benchmarks.suites.signals.carrier import Carrier


class Broadcaster(Carrier):
    async def __aenter__(self) -> Self:
        self._subscribers: dict[str, asyncio.Task[None]] = {}
        self._broadcast = await Broadcast(self.urls["redis"]).__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        for task in self._subscribers.values():
            task.cancel()
        await asyncio.gather(*self._subscribers.values(), return_exceptions=True)
        await self._broadcast.__aexit__(*exception)

    async def wait_for(self, topics: Sequence[str]) -> None:
        for topic in topics:
            if topic not in self._subscribers:
                subscribed = asyncio.Event()
                self._subscribers[topic] = asyncio.create_task(self._follow(topic, subscribed))
                await subscribed.wait()

    async def send(self, topic: str, record: float) -> None:
        await self._broadcast.publish(channel=topic, message=repr(record))

    async def _follow(self, topic: str, subscribed: asyncio.Event) -> None:
        async with self._broadcast.subscribe(channel=topic) as subscriber:
            subscribed.set()
            # Its annotations say that all of this may be None.
            events: AsyncIterator[Any] = aiter(subscriber)  # type: ignore[arg-type]
            async for event in events:
                self.woken(topic, float(event.message))
