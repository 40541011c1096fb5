"""The second design: a hidden topic for each of some delays. Its partitions are in the order of due times."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any, Final

import anyio
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener  # type: ignore[import-untyped]  # has no types
from anyio.abc import TaskStatus

from examples.delayed.batches import BATCH, Batches, commit
from examples.delayed.clients import consuming, create_topics, next_records
from examples.delayed.forwarder import Forwarder
from examples.delayed.request import LEVEL_DUE, WHOLE, Record, Request
from examples.delayed.settings import Settings

# Milliseconds of a wait for records. A stop may take that long.
_WAIT: Final = 200


async def levels(
    settings: Settings, forwarder: Forwarder, stop: anyio.Event, *, task_status: TaskStatus[None]
) -> None:
    """Run an instance until `stop`: an intake that sorts records into the levels, and an outlet.

    A record waits for the shortest level that is long enough, so it may be late by nearly the difference
    between two levels. One that is due after the longest level waits for that several times.
    """
    topics, bootstrap, timeout = settings.topics, settings.bootstrap, settings.session_timeout
    names = [topics.level(level) for level in settings.levels]
    all_names = (topics.requests, topics.rejected, *names)
    await create_topics(bootstrap, all_names, settings.partitions, settings.replicas)

    async def sort(record: Record) -> bool:
        request = Request.parse(record, topics)
        now = time.time() * 1000
        if request.due <= now:
            await forwarder.deliver(request)
        else:
            level = next((each for each in settings.levels if now + each >= request.due), settings.levels[-1])
            leaves = (LEVEL_DUE, b"%d" % math.ceil(now + level))
            await forwarder.send(request.carried(topics.level(level), leaves))
        return True

    outlet, intake = Outlet(forwarder), Batches(sort)
    async with (
        consuming(bootstrap, names, topics.group("outlet"), timeout, outlet) as waiting,
        consuming(bootstrap, [topics.requests], topics.group("intake"), timeout, intake) as arriving,
        anyio.create_task_group() as group,
    ):
        group.start_soon(outlet.run, waiting, stop)
        group.start_soon(intake.run, arriving, stop)
        task_status.started()


class Outlet(ConsumerRebalanceListener):  # type: ignore[misc]  # has no types
    """Waits for the first record of each partition, and forwards what is due in the order of due times.

    A partition whose records are in memory is paused: memory holds one batch of each partition at most.
    """

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        # Records that were read, by partition, and the due times of the first ones.
        self._waiting: dict[Any, deque[Record]] = {}
        self._heads: list[tuple[int, Any]] = []
        # Held while records are sent and committed. Partitions are given up between that.
        self._sending = anyio.Lock(fast_acquire=True)

    async def run(self, consumer: AIOKafkaConsumer, stop: anyio.Event) -> None:
        while not stop.is_set():
            records = await next_records(consumer, self._pause(), BATCH)
            # No other task runs between the line above and the next await: these partitions are assigned.
            for partition, some in records.items():
                self._waiting[partition] = deque(some)
                heappush(self._heads, (_level_due(some[0]), partition))
                consumer.pause(partition)
            async with self._sending:
                await self._forward_due(consumer)

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Forget what was read. The next owner reads it."""
        async with self._sending:
            self._waiting.clear()
            self._heads.clear()

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Nothing: a partition that was assigned is not paused."""

    def _pause(self) -> int:
        """Milliseconds until the first record is due."""
        if not self._heads:
            return _WAIT
        return max(0, min(_WAIT, math.ceil(self._heads[0][0] - time.time() * 1000)))

    async def _forward_due(self, consumer: AIOKafkaConsumer) -> None:
        now = time.time() * 1000
        offsets: dict[Any, int] = {}
        async with anyio.create_task_group() as group:
            while self._heads and self._heads[0][0] <= now:
                _, partition = heappop(self._heads)
                waiting = self._waiting[partition]
                record = waiting.popleft()
                group.start_soon(self._forward, record)
                offsets[partition] = record.offset + 1
                if waiting:
                    heappush(self._heads, (_level_due(waiting[0]), partition))
                else:
                    del self._waiting[partition]
        await commit(consumer, offsets)
        for partition in offsets:
            if partition not in self._waiting and partition in consumer.assignment():
                consumer.resume(partition)

    async def _forward(self, record: Record) -> None:
        forwarder = self._forwarder
        request = Request.parse(record, forwarder.topics)
        if request.due <= time.time() * 1000:
            await forwarder.deliver(request)
        else:
            # It waits for the longest level again.
            await forwarder.send(request.carried(forwarder.topics.requests))


def _level_due(record: Record) -> int:
    """When the record leaves its level; 0 if somebody else has sent it."""
    due = next((value for name, value in record.headers if name == LEVEL_DUE), None) or b""
    return int(due) if WHOLE.fullmatch(due) else 0
