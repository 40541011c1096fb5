"""Sends records to the service, and reads them from their target."""

from __future__ import annotations

import asyncio
import math
import random
import time
from functools import partial
from typing import Any, Final

import anyio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]  # has no types

from examples.delayed.clients import partitions_of
from examples.delayed.demo.ledger import Ledger
from examples.delayed.topics import Topics

# Seconds between two bursts of records.
_TICK: Final = 0.02
_VALUE: Final = bytes(100)


def log_uniform(random: random.Random, least: float, most: float) -> float:
    """A number between the two; each of its orders of magnitude is equally likely."""
    return math.exp(random.uniform(math.log(least), math.log(most)))


class Load:
    """Sends `messages` records in `seconds`. They are due after `least` to `most` seconds, log-uniform."""

    def __init__(
        self, messages: int, seconds: float, least: float, most: float, seed: int, ledger: Ledger
    ) -> None:
        self._messages = messages
        self._seconds = seconds
        self._least = least
        self._most = most
        self._random = random.Random(seed)
        self._ledger = ledger

    async def send(self, producer: AIOKafkaProducer, topics: Topics, target: str) -> None:
        """Return when all records are acknowledged. Raises KafkaError if one is not."""
        sent = 0
        futures: list[asyncio.Future[Any]] = []
        start = anyio.current_time()
        while sent < self._messages:
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
                sent += 1
            await anyio.sleep(_TICK)
        await asyncio.gather(*futures)

    def _acknowledged(self, due: int, future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and future.exception() is None:
            record = future.result()
            self._ledger.acknowledge(f"{record.partition}-{record.offset}", due)


class Arrivals:
    """Reads a target topic into the ledger."""

    def __init__(self, consumer: AIOKafkaConsumer, target: str, numbers: set[int], ledger: Ledger) -> None:
        self._consumer = consumer
        self._partitions = partitions_of(target, numbers)
        self._ledger = ledger
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
                self._ledger.arrive(
                    headers["delayed-id"].decode(), int(headers["delayed-due"]), record.timestamp, now
                )
        if batches:
            self.moved.set()
            self.moved = anyio.Event()
