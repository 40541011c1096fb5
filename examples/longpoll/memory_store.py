"""The store of a service with one worker, in its memory."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Mapping
from typing import Self

from examples.longpoll.store import SESSION_TIMEOUT, TOPICS, Excerpt, TooManyTopics
from examples.longpoll.topics import TopicLog
from purgatory.relay import Transport
from purgatory.testing import InProcessBroker
from purgatory.web import Position


class MemoryStore:
    """`Store` in memory. After a restart all topics are gone, and new ones have logs with other ids."""

    signals = False

    def __init__(self) -> None:
        # There is nobody else to signal. With a relay all the same, one worker works as several do.
        self._broker = InProcessBroker()
        self._logs: dict[str, TopicLog] = {}
        self._ends: dict[str, float] = {}

    def transport(self) -> Transport:
        return self._broker.transport()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None: ...

    async def append(self, topic: str, record: bytes) -> int:
        if topic not in self._logs:
            if len(self._logs) == TOPICS:
                raise TooManyTopics
            self._logs[topic] = TopicLog(secrets.token_hex(4))
        return self._logs[topic].append(record)

    async def read(self, positions: Mapping[str, Position]) -> Mapping[str, Excerpt]:
        excerpts = {}
        for topic, position in positions.items():
            if (log := self._logs.get(topic)) is not None:
                offset = log.offset_of(position)
                first = log.start if offset is None else offset
                excerpts[topic] = Excerpt(log.id, first, log.read(first))
        return excerpts

    async def online(self) -> Collection[str]:
        now = asyncio.get_running_loop().time()
        self._ends = {name: end for name, end in self._ends.items() if end > now}
        return list(self._ends)

    async def heartbeat(self, name: str) -> bool:
        new = name not in await self.online()
        self._ends[name] = asyncio.get_running_loop().time() + SESSION_TIMEOUT
        return new

    async def leave(self, name: str) -> None:
        self._ends.pop(name, None)
