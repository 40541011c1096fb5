"""Which records were cancelled."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import anyio
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]  # has no types

from examples.delayed.clients import create_topics, next_records, partitions_of, reading
from examples.delayed.request import POSITION
from examples.delayed.settings import Settings
from purgatory import Purgatory

# Milliseconds of a wait for ids.
_WAIT: Final = 200
# The key of the purgatory.
_READ: Final = "read"

logger = logging.getLogger("examples.delayed")


class Cancellations:
    """The ids of the cancelled records. Each instance reads all of them, and keeps them in memory.

    A cancel counts once the cluster has acknowledged it. So the answer to each question needs the end of the
    topic, from after the question, and all ids up to there. Questions of the same moment share a look.

    `reader` and `asker` are two clients, because a broker answers the requests of a connection one after the
    other. A look at the end would wait for the answer to a fetch, for up to half a second.
    """

    def __init__(
        self,
        reader: AIOKafkaConsumer,
        asker: AIOKafkaConsumer,
        partitions: Sequence[Any],
        purgatory: Purgatory,
    ) -> None:
        self._reader = reader
        self._asker = asker
        self._partitions = partitions
        # It holds the questions that wait for the reader.
        self._purgatory = purgatory
        self._ids: set[str] = set()
        self._positions: dict[Any, int] = {}
        # Looks at the end are counted. The last one that was answered has found `_ends`.
        self._looking = anyio.Lock(fast_acquire=True)
        self._begun = self._answered = 0
        self._ends: dict[Any, int] = {}

    @classmethod
    @asynccontextmanager
    async def running(cls, settings: Settings) -> AsyncIterator[Self]:
        """Read until the end of the block, which begins when all ids so far are read."""
        topic, bootstrap = settings.topics.cancelled, settings.bootstrap
        # With one partition, each look asks a single broker.
        numbers = (await create_topics(bootstrap, [topic], 1, settings.replicas))[topic]
        async with (
            Purgatory("cancellations") as purgatory,
            reading(bootstrap) as reader,
            reading(bootstrap) as asker,
            anyio.create_task_group() as tasks,
        ):
            cancellations = cls(reader, asker, partitions_of(topic, numbers), purgatory)
            tasks.start_soon(cancellations.read)
            await cancellations.catch_up()
            yield cancellations
            tasks.cancel_scope.cancel()

    async def include(self, id: str) -> bool:
        """Whether a cancel of this record was acknowledged before this call. Raises KafkaError."""
        await self.catch_up()
        return id in self._ids

    async def catch_up(self) -> None:
        """Return when all ids are read that were acknowledged before this call. Raises KafkaError."""
        ends = await self._ends_from_now()
        await self._purgatory.wait_until(
            lambda: all(self._positions.get(each, 0) >= end for each, end in ends.items()), [_READ], None
        )

    async def read(self) -> None:
        """Read until it is cancelled."""
        self._reader.assign(self._partitions)
        while True:
            batches = await next_records(self._reader, _WAIT)
            for record in [record for batch in batches.values() for record in batch]:
                if POSITION.fullmatch(record.key or b"") is None:
                    logger.error(
                        "cancel %d has no id: its key must be the partition-offset of a record", record.offset
                    )
                else:
                    self._ids.add(record.key.decode())
            for partition in self._partitions:
                # Behind the last id there may be the marker of a transaction.
                self._positions[partition] = await self._reader.position(partition)
            self._purgatory.check_and_complete(_READ)

    async def _ends_from_now(self) -> dict[Any, int]:
        """The ends of the partitions, as they are after this call has begun."""
        needed = self._begun + 1
        async with self._looking:
            if self._answered < needed:
                self._begun += 1
                self._ends = await self._asker.end_offsets(self._partitions)
                self._answered = self._begun
            return self._ends
