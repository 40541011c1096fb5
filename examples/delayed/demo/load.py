"""Sends records to the service, and reads them from their target."""

from __future__ import annotations

import asyncio
import math
import random
import time
from functools import partial
from heapq import heappop, heappush
from typing import Any, Final

import anyio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]  # has no types

from examples.delayed.clients import partitions_of
from examples.delayed.demo.deliveries import Deliveries
from examples.delayed.topics import Topics

# Seconds between two bursts of records.
_TICK: Final = 0.02
_VALUE: Final = bytes(100)
# Seconds before a record is due, at least, when its cancel is sent.
_SHORTEST_NOTICE: Final = 0.001


def log_uniform(random: random.Random, least: float, most: float) -> float:
    """A number between the two; each of its orders of magnitude is equally likely."""
    return math.exp(random.uniform(math.log(least), math.log(most)))


class Load:
    """Sends `messages` records in `seconds`. They are due after `least` to `most` seconds, log-uniform.

    A share of them, `cancelled`, is cancelled before they are due, most of them shortly before.
    """

    def __init__(
        self,
        messages: int,
        seconds: float,
        least: float,
        most: float,
        seed: int,
        deliveries: Deliveries,
        cancelled: float = 0.0,
    ) -> None:
        self._messages = messages
        self._seconds = seconds
        self._least = least
        self._most = most
        self._random = random.Random(seed)
        self._deliveries = deliveries
        self._cancelled = cancelled
        # Cancels to send: when, a number that makes them differ, and the future of the record.
        self._cancels: list[tuple[float, int, asyncio.Future[Any]]] = []

    async def send(self, producer: AIOKafkaProducer, topics: Topics, target: str) -> None:
        """Return when all records and cancels are acknowledged. Raises KafkaError if one is not."""
        sent = 0
        futures: list[asyncio.Future[Any]] = []
        start = anyio.current_time()
        while sent < self._messages or self._cancels:
            elapsed = (anyio.current_time() - start + _TICK) / self._seconds
            for _ in range(sent, min(self._messages, round(self._messages * elapsed))):
                delay = log_uniform(self._random, self._least, self._most)
                due = round((time.time() + delay) * 1000)
                headers = [("deliver-at", b"%d" % due), ("target", target.encode())]
                # Records without a key of their own would all go to one partition for a while.
                key = b"%d" % sent
                future = await producer.send(topics.requests, _VALUE, key, headers=headers)
                future.add_done_callback(partial(self._acknowledged, due))
                futures.append(future)
                if self._cancelled and self._random.random() < self._cancelled:
                    notice = log_uniform(self._random, _SHORTEST_NOTICE, delay)
                    heappush(self._cancels, (due / 1000 - notice, sent, future))
                sent += 1
            futures += await self._send_cancels(producer, topics.cancelled)
            await anyio.sleep(_TICK)
        await asyncio.gather(*futures)

    async def _send_cancels(self, producer: AIOKafkaProducer, topic: str) -> list[asyncio.Future[Any]]:
        futures = []
        while self._cancels and self._cancels[0][0] <= time.time():
            record = await heappop(self._cancels)[2]
            id = f"{record.partition}-{record.offset}"
            future = await producer.send(topic, b"", id.encode())
            future.add_done_callback(partial(self._cancel_acknowledged, id))
            futures.append(future)
        return futures

    def _cancel_acknowledged(self, id: str, future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and future.exception() is None:
            self._deliveries.cancel(id, time.time() * 1000)

    def _acknowledged(self, due: int, future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and future.exception() is None:
            record = future.result()
            self._deliveries.acknowledge(f"{record.partition}-{record.offset}", due)


class Arrivals:
    """Reads a target topic, and notes what has arrived."""

    def __init__(
        self, consumer: AIOKafkaConsumer, target: str, numbers: set[int], deliveries: Deliveries
    ) -> None:
        self._consumer = consumer
        self._partitions = partitions_of(target, numbers)
        self._deliveries = deliveries
        self.moved = anyio.Event()
        consumer.assign(self._partitions)

    async def read(self) -> None:
        """Read until it is cancelled."""
        while True:
            await self._take()

    async def read_to_end(self) -> None:
        """Read what is there now. `read` must have ended."""
        ends = await self._consumer.end_offsets(self._partitions)
        while any([await self._consumer.position(each) < end for each, end in ends.items()]):
            await self._take()

    async def _take(self) -> None:
        batches = await self._consumer.getmany(timeout_ms=500)
        now = time.time() * 1000
        for batch in batches.values():
            for record in batch:
                headers = dict(record.headers)
                self._deliveries.arrive(
                    headers["delayed-id"].decode(), int(headers["delayed-due"]), record.timestamp, now
                )
        if batches:
            self.moved.set()
            self.moved = anyio.Event()
