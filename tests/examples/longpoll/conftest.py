"""Workers of the service on the test's loop, and the service in processes of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack

import httpx
import pytest
import pytest_asyncio

from examples.longpoll.application import application
from examples.longpoll.memory_store import MemoryStore
from examples.longpoll.service import Service
from examples.longpoll.store import Excerpt, Store, StoreUnavailable
from purgatory.testing import VirtualTimeLoop
from purgatory.web import Position
from tests.browser import browser as browser
from tests.examples.longpoll.process import ServiceProcess, service_process
from tests.relay.live.servers import PostgresServer


class FaultyStore(MemoryStore):
    """A store that several workers share. It cannot be reached while it is `away`.

    `delays` are the seconds that the next answers take, once they are decided.
    """

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.delays: list[float] = []

    async def read(self, positions: Mapping[str, Position]) -> Mapping[str, Excerpt]:
        excerpts = await super().read(positions)
        await self._delay()
        return excerpts

    async def online(self) -> Collection[str]:
        self._reach()
        names = await super().online()
        await self._delay()
        return names

    async def append(self, topic: str, record: bytes) -> int:
        self._reach()
        return await super().append(topic, record)

    async def _delay(self) -> None:
        if self.delays:
            await asyncio.sleep(self.delays.pop(0))

    def _reach(self) -> None:
        if self.away:
            raise StoreUnavailable("it is away")


class Worker:
    """A worker of the service, and a client that reaches no other."""

    def __init__(self, store: Store) -> None:
        self.service = Service(store)
        transport = httpx.ASGITransport(application(self.service))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    async def say(self, topic: str, *texts: str) -> None:
        for text in texts:
            answer = await self.client.post(f"/topics/{topic}", json={"name": "ada", "text": text})
            assert answer.status_code == 201

    async def poll(self, url: str) -> asyncio.Task[httpx.Response]:
        """Send a request, and return when it waits, and all that it waits for has been looked at."""
        pending = self.service.polls.statistics().pending
        task = asyncio.create_task(self.client.get(url))
        for _ in range(1_000):
            await asyncio.sleep(0.01)
            looked = not self.service.relay.statistics().waiting
            if looked and self.service.polls.statistics().pending == pending + 1:
                return task
        raise AssertionError(task)


@pytest_asyncio.fixture
async def store(virtual_time: VirtualTimeLoop) -> FaultyStore:
    return FaultyStore()


@pytest_asyncio.fixture
async def workers(store: FaultyStore) -> AsyncIterator[tuple[Worker, Worker]]:
    async with AsyncExitStack() as stack:
        pair = Worker(store), Worker(store)
        for worker in pair:
            await stack.enter_async_context(worker.service.running())
            await stack.enter_async_context(worker.client)
        yield pair


@pytest.fixture
def worker(workers: tuple[Worker, Worker]) -> Worker:
    return workers[0]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def running_service() -> Iterator[ServiceProcess]:
    """One service for all tests that leave it as it is."""
    with service_process() as service:
        yield service
