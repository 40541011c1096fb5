"""The first design: a record that is not due is written back, and read again later."""

from __future__ import annotations

import time
from typing import Final

import anyio
from anyio.abc import TaskStatus

from examples.delayed.batches import Batches
from examples.delayed.clients import consuming, create_topics
from examples.delayed.forwarder import Forwarder
from examples.delayed.request import Record, Request
from examples.delayed.settings import Settings

# Seconds between two looks at records that are not due. Without the pause, a single record would keep the
# processor and the brokers busy for as long as it waits.
_PAUSE: Final = 0.05


async def requeue(
    settings: Settings, forwarder: Forwarder, stop: anyio.Event, *, task_status: TaskStatus[None]
) -> None:
    """Run an instance until `stop`.

    The delay of a record depends on the backlog: a record that is due waits for all those before it.
    """
    topics = settings.topics
    await create_topics(
        settings.bootstrap, (topics.requests, topics.rejected), settings.partitions, settings.replicas
    )

    async def handle(record: Record) -> bool:
        request = Request.parse(record, topics)
        due = request.due <= time.time() * 1000
        if due:
            await forwarder.deliver(request)
        else:
            await forwarder.send(request.carried(topics.requests, partition=record.partition))
        return due

    batches = Batches(handle, _PAUSE)
    group = topics.group("requeue")
    async with consuming(
        settings.bootstrap, [topics.requests], group, settings.session_timeout, batches
    ) as consumer:
        task_status.started()
        await batches.run(consumer, stop)
