"""Reads topics as a member of a group, and commits what was handled."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import anyio
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener  # type: ignore[import-untyped]  # has no types
from aiokafka.errors import CommitFailedError, IllegalStateError  # type: ignore[import-untyped]  # has no types

from examples.delayed.clients import next_records
from examples.delayed.request import Record

# Records that are sent at a time.
BATCH: Final = 1_000
# Milliseconds of a wait for records. A stop may take that long.
_WAIT: Final = 200

logger = logging.getLogger("examples.delayed")


class Batches(ConsumerRebalanceListener):  # type: ignore[misc]  # has no types
    """Handles the records of a batch at the same time; then commits their offsets.

    The group gets partitions back between two batches, so no record is handled twice unless a member fails.
    When `handle` returns False for every record of a batch, there is a pause of `pause` seconds.
    """

    def __init__(self, handle: Callable[[Record], Awaitable[bool]], pause: float = 0.0) -> None:
        self._handle = handle
        self._pause = pause
        self._handling = anyio.Lock(fast_acquire=True)

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Wait for the end of the batch."""
        async with self._handling:
            pass

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Nothing."""

    async def run(self, consumer: AIOKafkaConsumer, stop: anyio.Event) -> None:
        """Read until `stop`. When an exception leaves `handle`, nothing of the batch is committed."""
        useful: list[bool] = []

        async def handle(record: Record) -> None:
            useful.append(await self._handle(record))

        while not stop.is_set():
            useful.clear()
            records = await next_records(consumer, _WAIT, BATCH)
            # No other task runs between the line above and the next one: these partitions are assigned.
            async with self._handling:
                async with anyio.create_task_group() as group:
                    for record in [record for some in records.values() for record in some]:
                        group.start_soon(handle, record)
                await commit(
                    consumer, {partition: some[-1].offset + 1 for partition, some in records.items()}
                )
            if records and not any(useful):
                with anyio.move_on_after(self._pause):
                    await stop.wait()


async def commit(consumer: AIOKafkaConsumer, offsets: dict[Any, int]) -> None:
    """Commit offsets by partition. If another member has the partitions now, it handles the records again."""
    if not offsets:
        return
    try:
        await consumer.commit(offsets)
    except (CommitFailedError, IllegalStateError) as error:
        logger.warning("records are handled again, because the group has moved their partitions: %s", error)
