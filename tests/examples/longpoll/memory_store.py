"""A store that services of the same test share."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from examples.longpoll.limits import Limits
from examples.longpoll.store import Excerpt, StoreUnavailable
from examples.longpoll.topic_log import TopicLog
from purgatory.relay import Transport
from purgatory.testing import InProcessBroker
from purgatory.web import Position


class MemoryStore:
    """`Store` in memory. All requests fail while it is `away`. No read is answered while it is `frozen`."""

    signals = False

    def __init__(self, limits: Limits) -> None:
        self.broker = InProcessBroker()
        self.away = False
        self.frozen = False
        self._limits = limits
        self._id = "first"
        self._logs: dict[str, TopicLog] = {}
        self._sessions: dict[str, float] = {}

    def transport(self) -> Transport:
        return self.broker.transport()

    def empty(self) -> None:
        """Lose everything, as a server without a disk does when it restarts."""
        self._id = "second"
        self._logs.clear()

    async def __aenter__(self) -> MemoryStore:
        return self

    async def __aexit__(self, *exception: object) -> None: ...

    async def append(self, topic: str, record: bytes) -> int:
        self._check()
        return self._logs.setdefault(topic, TopicLog(topic, self._id, self._limits)).append(record)

    async def read(self, positions: Mapping[str, Position]) -> Collection[Excerpt]:
        self._check()
        if self.frozen:
            await asyncio.Event().wait()
        excerpts = []
        for topic, position in positions.items():
            log = self._logs.get(topic) or TopicLog(topic, self._id, self._limits)
            offset = max(position.offset, log.start) if position.log == self._id else log.start
            excerpts.append(Excerpt(topic, self._id, offset, log.read(offset).records))
        return excerpts

    async def topics(self) -> Collection[str]:
        self._check()
        return list(self._logs)

    async def online(self) -> Collection[str]:
        self._check()
        return [name for name, end in self._sessions.items() if end > asyncio.get_running_loop().time()]

    async def heartbeat(self, name: str) -> bool:
        new = name not in await self.online()
        self._sessions[name] = asyncio.get_running_loop().time() + self._limits.session_timeout
        return new

    async def leave(self, name: str) -> bool:
        self._check()
        return self._sessions.pop(name, None) is not None

    def _check(self) -> None:
        if self.away:
            raise StoreUnavailable("it is away")
