"""One of the replicas."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import anyio
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]  # has no types
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from examples.delayed.clients import consuming, create_topics, next_records, partitions_of, reading
from examples.delayed.forwarder import Forwarder
from examples.delayed.request import Record
from examples.delayed.settings import Settings
from examples.delayed.wheel.ownership import Ownership
from examples.delayed.wheel.partition import PartitionWheel
from examples.delayed.wheel.positions import Positions
from purgatory import Purgatory

# Records of one read.
_READ: Final = 2_000
# Milliseconds of a wait for records.
_WAIT: Final = 1_000
# Seconds between two writes of the positions. After a crash, what was read since is read again.
_STORE: Final = 1.0

logger = logging.getLogger("examples.delayed")

# Handles records of a partition; the last argument is the offset of the next one.
Take = Callable[[PartitionWheel, Sequence[Record], int], Coroutine[None, None, None]]


async def wheel(
    settings: Settings, forwarder: Forwarder, stop: anyio.Event, *, task_status: TaskStatus[None]
) -> None:
    """Run a replica until `stop`.

    Each replica stores all records, so each can take over from any other. Each partition has one owner,
    which forwards its records and tells the others. Raises ValueError if the directory is of other topics,
    and for a session timeout that is too short.
    """
    if settings.session_timeout < 2 * settings.lease:
        raise ValueError(f"the session timeout must be {2 * settings.lease:g} s or more")
    topics, bootstrap = settings.topics, settings.bootstrap
    names = (topics.requests, topics.done, topics.rejected)
    partitions_of_topic = await create_topics(bootstrap, names, settings.partitions, settings.replicas)
    numbers = partitions_of_topic[topics.requests]
    if partitions_of_topic[topics.done] != numbers:
        raise ValueError(f"{topics.done} must have as many partitions as {topics.requests}")
    partitions: dict[int, PartitionWheel] = {}
    async with Purgatory("wheel") as purgatory, reading(bootstrap) as records, reading(bootstrap) as done:
        ownership = Ownership(
            topics.requests,
            prepare=lambda number: _catch_up(done, topics.done, partitions[number]),
            changed=lambda number: partitions[number].owner_changed(),
            drained=lambda number: partitions[number].drained(),
            patience=settings.session_timeout / 2,
            lease=settings.lease,
        )
        for number in numbers:
            directory = settings.directory / f"partition-{number}"
            partitions[number] = PartitionWheel(
                number, directory, forwarder, ownership, purgatory, partial(_end, records, topics.requests)
            )
        try:
            await _run(settings, records, done, partitions, ownership, forwarder, stop, task_status)
        finally:
            for partition in partitions.values():
                partition.store_last_positions()


async def _run(
    settings: Settings,
    records: AIOKafkaConsumer,
    done: AIOKafkaConsumer,
    partitions: dict[int, PartitionWheel],
    ownership: Ownership,
    forwarder: Forwarder,
    stop: anyio.Event,
    task_status: TaskStatus[None],
) -> None:
    topics = settings.topics
    ends = await _begin(records, topics.requests, partitions, 0)
    await _begin(done, topics.done, partitions, 1)
    async with AsyncExitStack() as stack:
        scope = stack.enter_context(anyio.CancelScope())
        for partition in partitions.values():
            await stack.enter_async_context(partition.store)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, records, partitions, PartitionWheel.add)
            tasks.start_soon(_read, done, partitions, PartitionWheel.clear)
            tasks.start_soon(_keep_books, partitions, ownership, forwarder)
            for partition in partitions.values():
                tasks.start_soon(partition.store.failed)
            # An owner that has to read much first would hold up what is due. One whose disk is full forwards
            # what it has.
            await _read_to(ends, partitions)
            group = topics.group("forwarders")
            async with (
                consuming(settings.bootstrap, [], group, settings.session_timeout) as member,
                anyio.create_task_group() as membership,
            ):
                membership.start_soon(ownership.run, member)
                task_status.started()
                await stop.wait()
                await ownership.release()
                membership.cancel_scope.cancel()
            tasks.cancel_scope.cancel()
        # A record that is due, and that another instance owns, would hold up the closing of its store.
        scope.cancel()
        await checkpoint()


async def _begin(
    consumer: AIOKafkaConsumer, topic: str, partitions: dict[int, PartitionWheel], field: int
) -> dict[int, int]:
    """Let a reader begin where the partitions are. Returns the ends of the partitions.

    Raises ValueError when a partition ends before that.
    """
    full = partitions_of(topic, partitions)
    consumer.assign(full)
    starts, ends = await consumer.beginning_offsets(full), await consumer.end_offsets(full)
    for each in full:
        partition = partitions[each.partition]
        at = partition.positions[field]
        if at > ends[each]:
            raise ValueError(
                f"{topic} has {ends[each]} records in partition {each.partition}, and this instance has read "
                f"{at}: the topic was deleted and created again; start with another directory"
            )
        # The first records may have been deleted meanwhile.
        at = max(at, starts[each])
        partition.start_at(partition.positions._replace(**{Positions._fields[field]: at}))
        consumer.seek(each, at)
    return {each.partition: ends[each] for each in full}


async def _read(consumer: AIOKafkaConsumer, partitions: dict[int, PartitionWheel], take: Take) -> None:
    while True:
        records = await next_records(consumer, _WAIT, _READ)
        async with anyio.create_task_group() as group:
            for full, some in records.items():
                group.start_soon(take, partitions[full.partition], some, some[-1].offset + 1)
            if not records:
                # Behind the last record there may be the marker of a transaction.
                for full in consumer.assignment():
                    group.start_soon(take, partitions[full.partition], (), await consumer.position(full))


async def _read_to(ends: dict[int, int], partitions: dict[int, PartitionWheel]) -> None:
    """Wait until all partitions are read up to their ends, or a disk is full, which holds up all of them."""
    async with anyio.create_task_group() as waiting:

        async def wait(partition: PartitionWheel, end: int) -> None:
            if not await partition.read(end):
                waiting.cancel_scope.cancel()

        for number, end in ends.items():
            waiting.start_soon(wait, partitions[number], end)


async def _catch_up(consumer: AIOKafkaConsumer, topic: str, partition: PartitionWheel) -> None:
    """Clear what others have forwarded before now."""
    await partition.cleared(await _end(consumer, topic, partition.number))


async def _end(consumer: AIOKafkaConsumer, topic: str, partition: int) -> int:
    """The offset behind the last record of a partition."""
    (end,) = (await consumer.end_offsets(partitions_of(topic, [partition]))).values()
    return int(end)


async def _keep_books(
    partitions: dict[int, PartitionWheel], ownership: Ownership, forwarder: Forwarder
) -> None:
    """Store the positions and count, once a second."""
    statistics = forwarder.statistics
    while True:
        statistics.partitions = len(ownership.owned)
        statistics.disk_bytes = sum(partition.disk_bytes for partition in partitions.values())
        for partition in partitions.values():
            try:
                await partition.store_positions()
            except OSError as error:
                logger.error("the positions of partition %d stay behind: %s", partition.number, error)
        await anyio.sleep(_STORE)
