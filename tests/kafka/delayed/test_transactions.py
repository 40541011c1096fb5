"""Records that producers send in transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]  # has no types

from examples.delayed.clients import create_topics
from examples.delayed.service import DESIGNS
from examples.delayed.settings import Settings
from tests.examples.delayed.running import Sender, instance, read

pytestmark = pytest.mark.kafka


@asynccontextmanager
async def transactions(settings: Settings) -> AsyncIterator[AIOKafkaProducer]:
    topic = settings.topics.requests
    await create_topics(settings.bootstrap, [topic], settings.partitions, settings.replicas)
    producer = AIOKafkaProducer(bootstrap_servers=settings.bootstrap, transactional_id=topic)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@pytest.mark.parametrize("design", DESIGNS)
async def test_the_records_of_an_aborted_transaction_are_not_forwarded(
    design: str, settings: Settings
) -> None:
    async with transactions(settings) as producer:
        sender = Sender(producer, settings.topics)
        async with producer.transaction():
            ids = await sender.send_all([0.0] * 300)
        await producer.begin_transaction()
        await sender.send_all([0.0] * 300)
        await producer.abort_transaction()
        # Each partition ends with the marker of a transaction, which is no record.
        async with instance(design, settings):
            async with producer.transaction():
                ids += await sender.send_all([0.5] * 300)
            arrived = await read(settings, sender.target, len(ids))
    assert sorted(record.id for record in arrived) == sorted(ids)
    assert all(record.at >= record.due for record in arrived)
