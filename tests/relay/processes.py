"""Processes with a relay each, within one event loop. The shared state is a dict of versions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Protocol

from purgatory import DelayedOperation, Purgatory
from purgatory.relay import Key, Relay, Transport
from purgatory.testing import InProcessBroker

State = Counter[Key]


class Version(DelayedOperation[int]):
    """Waits until its process knows of a version of a key, or of a later one."""

    def __init__(self, cache: State, key: Key, version: int, timeout: float | None = None) -> None:
        super().__init__(timeout)
        self.cache, self.key, self.version = cache, key, version

    def try_complete(self) -> bool:
        return self.cache[self.key] >= self.version and self.force_complete()

    def on_complete(self) -> int:
        return self.cache[self.key]


class Maker(Protocol):
    """Makes transports that reach each other: a broker, a server, or a proxy of one."""

    def transport(self) -> Transport: ...


class Process:
    """A purgatory with a relay, and what the process knows of the shared state.

    A refresh takes `slowness` seconds, and reads the state in the middle of that. It raises `failure`.
    """

    def __init__(self, broker: Maker, state: State, **options: Any) -> None:
        self.state = state
        self.cache: State = Counter()
        self.slowness = 0.0
        self.failure: BaseException | None = None
        self.poison: Key | None = None
        # The keys of each call of refresh.
        self.calls: list[list[Key]] = []
        self.concurrent = 0
        self.purgatory = Purgatory("polls")
        self.transport = broker.transport()
        self.relay = Relay(self.purgatory, self.transport, refresh=self.load, **options)

    async def load(self, keys: Collection[Key]) -> None:
        self.calls.append(list(keys))
        self.concurrent += 1
        assert self.concurrent == 1
        try:
            await asyncio.sleep(self.slowness / 2)
            if self.failure is not None:
                raise self.failure
            if self.poison in keys:
                raise ValueError(f"{self.poison!r} cannot be read")
            read = {key: self.state[key] for key in keys}
            await asyncio.sleep(self.slowness / 2)
            self.cache.update({key: version - self.cache[key] for key, version in read.items()})
        finally:
            self.concurrent -= 1

    def write(self, key: Key) -> None:
        """Change the shared state, and signal it."""
        self.state[key] += 1
        self.relay.signal(key)

    def park(self, key: Key, version: int = 1, timeout: float | None = None) -> Version:
        """Wait for a version of `key`."""
        return self.purgatory.try_complete_else_watch(Version(self.cache, key, version, timeout), [key])

    async def __aenter__(self) -> Process:
        self.purgatory.start()
        try:
            await self.relay.__aenter__()
        except BaseException:
            await self.purgatory.aclose()
            raise
        return self

    async def __aexit__(self, *exception: Any) -> None:
        try:
            await self.relay.__aexit__(*exception)
        finally:
            await self.purgatory.aclose(cancel_pending=True)


class Pair:
    """Two processes, one of which mostly writes while the other waits."""

    def __init__(self, broker: InProcessBroker, writer: Process, waiter: Process) -> None:
        self.broker, self.writer, self.waiter = broker, writer, waiter
        self.state = writer.state


@asynccontextmanager
async def two_processes(**options: Any) -> AsyncIterator[Pair]:
    broker, state = InProcessBroker(latency=0.1), State()
    async with Process(broker, state, **options) as writer, Process(broker, state, **options) as waiter:
        yield Pair(broker, writer, waiter)
