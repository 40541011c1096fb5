"""Reads topics as a member of a group, and commits what was handled."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]  # has no types
from aiokafka.errors import CommitFailedError, IllegalStateError  # type: ignore[import-untyped]  # has no types

from examples.delayed.request import Record

# Records that are sent at a time.
BATCH: Final = 1_000
# Seconds of a wait for records. A stop may take that long.
_WAIT: Final = 0.2

logger = logging.getLogger("examples.delayed")


async def handle_batches(
    consumer: AIOKafkaConsumer, handle: Callable[[Record], Awaitable[bool]], stop: anyio.Event, pause: float
) -> None:
    """Read until `stop`. Handle the records of a batch at the same time; then commit their offsets.

    After a batch for none of whose records `handle` returns True, it waits for `pause` seconds. When an
    exception leaves `handle`, nothing of the batch is committed.
    """
    while not stop.is_set():
        records = await consumer.getmany(timeout_ms=round(_WAIT * 1000), max_records=BATCH)
        useful: list[bool] = []

        async def handle_one(record: Record, useful: list[bool] = useful) -> None:
            useful.append(await handle(record))

        async with anyio.create_task_group() as group:
            for some in records.values():
                for record in some:
                    group.start_soon(handle_one, record)
        await commit(consumer, {partition: some[-1].offset + 1 for partition, some in records.items()})
        if useful and not any(useful):
            with anyio.move_on_after(pause):
                await stop.wait()


async def commit(consumer: AIOKafkaConsumer, offsets: dict[Any, int]) -> None:
    """Commit offsets by partition. If another member has the partitions now, it handles the records again."""
    if not offsets:
        return
    try:
        await consumer.commit(offsets)
    except (CommitFailedError, IllegalStateError) as error:
        logger.warning("records are handled again, because the group has moved their partitions: %s", error)
