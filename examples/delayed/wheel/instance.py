"""One of the replicas."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
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
    partitions = await create_topics(bootstrap, names, settings.partitions, settings.replicas)
    if partitions[topics.done] != partitions[topics.requests]:
        raise ValueError(f"{topics.done} must have as many partitions as {topics.requests}")
    async with Purgatory("wheel") as purgatory, reading(bootstrap) as records, reading(bootstrap) as done:
        replica = Replica(settings, forwarder, purgatory, records, done, partitions[topics.requests])
        try:
            await replica.run(stop, task_status)
        finally:
            for partition in replica.partitions.values():
                partition.store_last_positions()


class Replica:
    """All partitions, a reader of the records, and a reader of the ids of those that are done."""

    def __init__(
        self,
        settings: Settings,
        forwarder: Forwarder,
        purgatory: Purgatory,
        records: AIOKafkaConsumer,
        done: AIOKafkaConsumer,
        numbers: Iterable[int],
    ) -> None:
        self._settings = settings
        self._forwarder = forwarder
        self._records = records
        self._done = done
        self._ownership = Ownership(
            settings.topics.requests,
            prepare=self._catch_up,
            changed=lambda number: self.partitions[number].owner_changed(),
            drained=lambda number: self.partitions[number].drained(),
            patience=settings.session_timeout / 2,
            lease=settings.lease,
        )
        self.partitions: dict[int, PartitionWheel] = {}
        for number in numbers:
            directory = settings.directory / f"partition-{number}"
            end = partial(_end, records, settings.topics.requests, number)
            self.partitions[number] = PartitionWheel(
                number, directory, forwarder, self._ownership, purgatory, end
            )

    async def run(self, stop: anyio.Event, task_status: TaskStatus[None]) -> None:
        topics, timeout = self._settings.topics, self._settings.session_timeout
        ends = await self._begin(self._records, topics.requests, "records")
        await self._begin(self._done, topics.done, "done")
        async with AsyncExitStack() as stack:
            scope = stack.enter_context(anyio.CancelScope())
            for partition in self.partitions.values():
                await stack.enter_async_context(partition.store)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, self._records, PartitionWheel.add)
                tasks.start_soon(self._read, self._done, PartitionWheel.clear)
                tasks.start_soon(self._keep_books)
                for partition in self.partitions.values():
                    tasks.start_soon(partition.store.failed)
                # An owner that has to read much first would hold up what is due. One whose disk is full
                # forwards what it has.
                await self._read_to(ends)
                async with (
                    consuming(self._settings.bootstrap, [], topics.group("forwarders"), timeout) as member,
                    anyio.create_task_group() as membership,
                ):
                    membership.start_soon(self._ownership.run, member)
                    task_status.started()
                    await stop.wait()
                    await self._ownership.release()
                    membership.cancel_scope.cancel()
                tasks.cancel_scope.cancel()
            # A record that is due, and that another instance owns, would hold up the closing of its store.
            scope.cancel()
            await checkpoint()

    async def _begin(self, consumer: AIOKafkaConsumer, topic: str, position: str) -> dict[int, int]:
        """Let a reader begin at a position of each partition. Returns the ends of the partitions.

        Raises ValueError when a partition ends before that.
        """
        full = partitions_of(topic, self.partitions)
        consumer.assign(full)
        starts, ends = await consumer.beginning_offsets(full), await consumer.end_offsets(full)
        for each in full:
            partition = self.partitions[each.partition]
            at = getattr(partition.positions, position)
            if at > ends[each]:
                raise ValueError(
                    f"{topic} has {ends[each]} records in partition {each.partition}, and this instance has "
                    f"read {at}: the topic was deleted and created again; start with another directory"
                )
            # The first records may have been deleted meanwhile.
            at = max(at, starts[each])
            partition.positions = partition.positions._replace(**{position: at})
            consumer.seek(each, at)
        return {each.partition: ends[each] for each in full}

    async def _read(self, consumer: AIOKafkaConsumer, take: Take) -> None:
        while True:
            records = await next_records(consumer, _WAIT, _READ)
            async with anyio.create_task_group() as group:
                for full, some in records.items():
                    group.start_soon(take, self.partitions[full.partition], some, some[-1].offset + 1)
                if not records:
                    # Behind the last record there may be the marker of a transaction.
                    for full in consumer.assignment():
                        at = await consumer.position(full)
                        group.start_soon(take, self.partitions[full.partition], (), at)

    async def _read_to(self, ends: dict[int, int]) -> None:
        """Wait until all partitions are read up to their ends, or a disk is full, which holds up all."""
        async with anyio.create_task_group() as waiting:

            async def wait(partition: PartitionWheel, end: int) -> None:
                if not await partition.read(end):
                    waiting.cancel_scope.cancel()

            for number, end in ends.items():
                waiting.start_soon(wait, self.partitions[number], end)

    async def _catch_up(self, number: int) -> None:
        """Clear what others have forwarded before now."""
        await self.partitions[number].cleared(await _end(self._done, self._settings.topics.done, number))

    async def _keep_books(self) -> None:
        """Store the positions and count, once a second."""
        statistics = self._forwarder.statistics
        while True:
            statistics.partitions = len(self._ownership.owned)
            statistics.disk_bytes = sum(partition.disk_bytes for partition in self.partitions.values())
            for partition in self.partitions.values():
                try:
                    await partition.store_positions()
                except OSError as error:
                    logger.error("the positions of partition %d stay behind: %s", partition.number, error)
            await anyio.sleep(_STORE)


async def _end(consumer: AIOKafkaConsumer, topic: str, number: int) -> int:
    """The offset behind the last record of a partition."""
    (end,) = (await consumer.end_offsets(partitions_of(topic, [number]))).values()
    return int(end)
