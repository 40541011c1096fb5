"""An idempotent producer that goes on after a record was refused."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Self

import anyio
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]  # has no types
from aiokafka.errors import (  # type: ignore[import-untyped]  # has no types
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
)
from anyio.abc import TaskGroup

from examples.delayed.clients import producing
from examples.delayed.request import ProducerRecord

# Attempts to send a record. Other records that are refused can make the first one fail.
_ATTEMPTS: Final = 5
# Seconds until a cluster that has not answered is asked again.
_AGAIN: Final = 0.1
# The brokers say so of a batch. It may be that each of its records is small enough.
TOO_LARGE: Final = (MessageSizeTooLargeError, RecordListTooLargeError)

logger = logging.getLogger("examples.delayed")


class Producer:
    """Sends records, and returns when all in-sync replicas have them.

    The client numbers its batches. When the brokers refuse one, its number is missing, and they refuse all
    later batches of the partition, too. Then this object takes a new client.
    """

    def __init__(self, bootstrap: str, tasks: TaskGroup) -> None:
        self._bootstrap = bootstrap
        self._tasks = tasks
        self._client: AIOKafkaProducer = None
        self._replacing = anyio.Lock(fast_acquire=True)
        self._replaced = anyio.Event()

    @classmethod
    @asynccontextmanager
    async def running(cls, bootstrap: str) -> AsyncIterator[Self]:
        """A connected producer."""
        async with anyio.create_task_group() as tasks:
            producer = cls(bootstrap, tasks)
            await producer._replace(None)
            yield producer
            producer._replaced.set()

    async def knows(self, topic: str) -> bool:
        """Whether a topic exists. It waits for the answer of the cluster, however long that takes.

        Raises TopicAuthorizationFailedError.
        """
        client = self._client.client
        if client.cluster.partitions_for_topic(topic) is None:
            client.add_topic(topic)
            while True:
                if await client.force_metadata_update():
                    break
                await anyio.sleep(_AGAIN)
            if topic in client.cluster.unauthorized_topics:
                raise TopicAuthorizationFailedError(topic)
        return client.cluster.partitions_for_topic(topic) is not None

    async def send(self, record: ProducerRecord) -> int:
        """Send a record, and return its offset. Raises KafkaError if the cluster does not take it."""
        # The client's `send` takes no record without both.
        alone = record.key is None and record.value is None
        for attempt in range(_ATTEMPTS):
            client = self._client
            try:
                return await (_send_alone if alone else _send)(client, record)
            except (OutOfOrderSequenceNumber, *TOO_LARGE) as error:
                await self._replace(client)
                too_large = not isinstance(error, OutOfOrderSequenceNumber)
                if attempt == _ATTEMPTS - 1 or (too_large and alone):
                    raise
                alone = alone or too_large
        raise AssertionError

    async def _replace(self, client: AIOKafkaProducer) -> None:
        """Take a new client instead of this one, if that has not happened yet."""
        async with self._replacing:
            if self._client is client:
                if client is not None:
                    logger.warning("the brokers have refused a batch: the producer begins anew")
                replaced, self._replaced = self._replaced, anyio.Event()
                self._client = await self._tasks.start(self._run, self._replaced)
                replaced.set()

    async def _run(
        self, replaced: anyio.Event, *, task_status: anyio.abc.TaskStatus[AIOKafkaProducer]
    ) -> None:
        async with producing(self._bootstrap) as client:
            task_status.started(client)
            await replaced.wait()


async def _send(client: AIOKafkaProducer, record: ProducerRecord) -> int:
    headers = list(record.headers)
    sent = await client.send(record.topic, record.value, record.key, record.partition, headers=headers)
    return int((await sent).offset)


async def _send_alone(client: AIOKafkaProducer, record: ProducerRecord) -> int:
    """Send a record in a batch of its own."""
    partition = record.partition
    if partition is None:
        partition = random.choice(sorted(await client.partitions_for(record.topic)))
    batch, headers = client.create_batch(), list(record.headers)
    if batch.append(timestamp=None, key=record.key, value=record.value, headers=headers) is None:
        raise KafkaError("a new batch takes no record")
    return int((await (await client.send_batch(batch, record.topic, partition=partition))).offset)
