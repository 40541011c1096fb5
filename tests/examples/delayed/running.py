"""An instance of the service in the test's own process, a producer, and a reader of any topic."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]  # has no types

from examples.delayed.clients import create_topics, partitions_of, producing, reading
from examples.delayed.forwarder import Statistics
from examples.delayed.request import Header
from examples.delayed.service import serve
from examples.delayed.settings import Settings, Topics

PATIENCE = 30.0
PARTITIONS = 3

_numbers = count(1)


def short_times(bootstrap: str, directory: Path, *, session_timeout: float, replicas: int) -> Settings:
    """Settings for topics that no other test uses. The session timeout is as short as the brokers take it."""
    return Settings(
        bootstrap,
        directory,
        Topics(f"delayed{next(_numbers)}"),
        PARTITIONS,
        replicas,
        session_timeout,
        lease=0.2,
        levels=(50, 100, 200),
    )


@asynccontextmanager
async def instance(design: str, settings: Settings) -> AsyncIterator[Statistics]:
    """A running instance. It stops in good order when the block ends."""
    stop, statistics = anyio.Event(), Statistics()
    async with anyio.create_task_group() as tasks:
        await tasks.start(serve, design, settings, statistics, stop)
        yield statistics
        stop.set()


@dataclass(frozen=True)
class Arrived:
    """A record that consumers get. `at` is when the service has written it, in milliseconds."""

    id: str
    at: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]

    @property
    def due(self) -> int:
        return int(self.headers["delayed-due"])


async def read(settings: Settings, topic: str, count: int) -> list[Arrived]:
    """The first records of a topic, in the order of their arrival."""
    partitions = (await create_topics(settings.bootstrap, [topic], 2, 1))[topic]
    arrived: list[Arrived] = []
    with anyio.fail_after(PATIENCE):
        async with reading(settings.bootstrap) as consumer:
            consumer.assign(partitions_of(topic, partitions))
            while len(arrived) < count:
                batches: dict[Any, Any] = await consumer.getmany(timeout_ms=1000)
                for record in [record for batch in batches.values() for record in batch]:
                    headers = dict(record.headers)
                    id = headers["delayed-id"].decode()
                    arrived.append(Arrived(id, record.timestamp, record.key, record.value, headers))
    return arrived


@asynccontextmanager
async def sender(settings: Settings) -> AsyncIterator[Sender]:
    requests = settings.topics.requests
    await create_topics(settings.bootstrap, [requests], settings.partitions, settings.replicas)
    async with producing(settings.bootstrap) as producer:
        yield Sender(producer, settings.topics)


class Sender:
    """Sends records to the service. Each method returns the ids, once they are acknowledged."""

    def __init__(self, producer: AIOKafkaProducer, topics: Topics) -> None:
        self._producer = producer
        self._topics = topics
        self.target = f"{topics.requests}.out"

    async def send(self, *headers: Header, topic: str | None = None) -> str:
        topic = topic or self._topics.requests
        sent = await self._producer.send_and_wait(topic, b"value", headers=list(headers))
        return f"{sent.partition}-{sent.offset}"

    async def cancel(self, id: str) -> None:
        await self._producer.send_and_wait(self._topics.cancelled, b"", id.encode())

    async def send_all(
        self, delays: Sequence[float], *, target: str | None = None, padding: bytes = b""
    ) -> list[str]:
        """Records that are due so many seconds from now. Their values are their indexes and `padding`."""
        target = target or self.target
        now = time.time()
        futures = [
            await self._producer.send(
                self._topics.requests,
                b"%d" % index + padding,
                b"%d" % index,
                headers=[
                    ("deliver-at", b"%d" % round((now + delay) * 1000)),
                    ("target", target.encode()),
                    ("index", b"%d" % index),
                ],
            )
            for index, delay in enumerate(delays)
        ]
        sent = [await future for future in futures]
        return [f"{each.partition}-{each.offset}" for each in sent]
