"""Sends records to the service, and reads what arrives."""

from __future__ import annotations

import math
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self

import anyio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]  # has no types

from examples.delayed.clients import create_topics, partitions_of, producing, reading
from examples.delayed.demo.deliveries import Deliveries
from examples.delayed.settings import Settings, Topics

# Seconds between two bursts of records.
_TICK: Final = 0.02
_VALUE: Final = bytes(100)
# Seconds before a record is due, at least, when its cancel is sent.
_SHORTEST_NOTICE: Final = 0.001
# Seconds without an arrival, after which no more are expected.
_SILENCE: Final = 60.0


@dataclass
class Traffic:
    """All records go to the same target, which is a topic that the traffic makes."""

    topics: Topics
    target: str
    partitions: Sequence[Any]
    producer: AIOKafkaProducer
    consumer: AIOKafkaConsumer
    deliveries: Deliveries = field(default_factory=Deliveries)
    # Set when records arrive, and made anew then.
    moved: anyio.Event = field(default_factory=anyio.Event)
    _sent: anyio.Event = field(default_factory=anyio.Event)

    @classmethod
    @asynccontextmanager
    async def of(cls, settings: Settings) -> AsyncIterator[Self]:
        """At the end of the block, all that was sent has arrived, or no more is expected."""
        target, bootstrap = f"{settings.topics.requests}.out", settings.bootstrap
        numbers = (await create_topics(bootstrap, [target], settings.partitions, settings.replicas))[target]
        async with reading(bootstrap) as consumer, producing(bootstrap) as producer:
            traffic = cls(settings.topics, target, partitions_of(target, numbers), producer, consumer)
            consumer.assign(traffic.partitions)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(traffic._read)
                yield traffic
                await traffic.arrived()
                tasks.cancel_scope.cancel()
            await traffic._read_to_end()

    async def send(
        self, messages: int, seconds: float, delays: tuple[float, float], seed: int, cancelled: float = 0.1
    ) -> None:
        """Send records in so many seconds. They are due after a time between both `delays`, log-uniform.

        A share of them, `cancelled`, is cancelled before they are due, most of them shortly before. Return
        when all records and cancels are acknowledged. Raises KafkaError if one is not.
        """
        self._sent = anyio.Event()
        chance, start = random.Random(seed), anyio.current_time()
        async with anyio.create_task_group() as tasks:
            for number in range(messages):
                early = start + seconds * number / messages - anyio.current_time()
                if early > 0:
                    await anyio.sleep(max(early, _TICK))
                delay = _log_uniform(chance, *delays)
                is_cancelled = chance.random() < cancelled
                notice = _log_uniform(chance, _SHORTEST_NOTICE, delay) if is_cancelled else None
                tasks.start_soon(self._send, number, delay, notice)
        self._sent.set()

    async def delivered(self, count: int) -> None:
        """Return when so many more records have arrived, or all that are sent."""
        enough = self.deliveries.delivered + count
        while self.deliveries.delivered < enough and not self._all_arrived:
            await self.moved.wait()

    async def arrived(self) -> None:
        """Return when all that is sent has arrived, except what is cancelled, or no more is expected.

        The deliveries tell what is missing then.
        """
        await self._sent.wait()
        while not self._all_arrived:
            with anyio.move_on_after(_SILENCE) as silence:
                await self.moved.wait()
            if silence.cancelled_caught:
                return

    @property
    def _all_arrived(self) -> bool:
        return self._sent.is_set() and self.deliveries.is_complete

    async def _send(self, number: int, delay: float, notice: float | None) -> None:
        """Send a record, and cancel it so many seconds before it is due."""
        due = round((time.time() + delay) * 1000)
        headers = [("deliver-at", b"%d" % due), ("target", self.target.encode())]
        # Records without a key of their own would all go to one partition for a while.
        key, topics = b"%d" % number, self.topics
        record = await self.producer.send_and_wait(topics.requests, _VALUE, key, headers=headers)
        id = f"{record.partition}-{record.offset}"
        self.deliveries.acknowledge(id, due)
        if notice is not None:
            await anyio.sleep(max(0.0, due / 1000 - notice - time.time()))
            await self.producer.send_and_wait(topics.cancelled, b"", id.encode())
            self.deliveries.cancel(id, time.time() * 1000)

    async def _read(self) -> None:
        while True:
            await self._take()

    async def _read_to_end(self) -> None:
        """Read what is there now. The last instance to stop may have sent something twice."""
        ends = await self.consumer.end_offsets(self.partitions)
        while any([await self.consumer.position(each) < end for each, end in ends.items()]):
            await self._take()

    async def _take(self) -> None:
        batches = await self.consumer.getmany(timeout_ms=500)
        now = time.time() * 1000
        for batch in batches.values():
            for record in batch:
                headers = dict(record.headers)
                id, due = headers["delayed-id"].decode(), int(headers["delayed-due"])
                self.deliveries.arrive(id, due, record.timestamp, now)
        if batches:
            self.moved.set()
            self.moved = anyio.Event()


def _log_uniform(chance: random.Random, least: float, most: float) -> float:
    """A number between the two; each of its orders of magnitude is equally likely."""
    return math.exp(chance.uniform(math.log(least), math.log(most)))
