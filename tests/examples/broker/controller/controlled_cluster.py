"""A controller, and brokers that only apply its images."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Self

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.controller import Controller
from examples.broker.controller.metadata_cache import MetadataCache
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.metadata import BrokerRegistration, PartitionState
from examples.broker.protocol.apis import METADATA
from examples.broker.protocol.codec import RequestContext
from examples.broker.topic_partition import TopicPartition

CONTEXT = RequestContext(METADATA, METADATA.max_version, 1, "test", "127.0.0.1")


def registration(broker_id: int) -> BrokerRegistration:
    return BrokerRegistration(broker_id, "127.0.0.1", 9092 + broker_id)


class ControlledCluster:
    """The brokers have the ids 0, 1, 2, ... Each applies images as they come, unless it is paused."""

    def __init__(self, controller: Controller, tasks: asyncio.TaskGroup) -> None:
        self.controller = controller
        self.admins: dict[int, ClusterAdmin] = {}
        self._tasks = tasks
        self._listeners: dict[int, asyncio.Task[None]] = {}

    @classmethod
    @asynccontextmanager
    async def running(cls, brokers: int = 3, defaults: ClusterDefaults | None = None) -> AsyncIterator[Self]:
        """Run a cluster whose brokers are registered and have the latest image."""
        async with AsyncExitStack() as stack:
            controller = await stack.enter_async_context(Controller.running(defaults or ClusterDefaults()))
            cluster = cls(controller, await stack.enter_async_context(asyncio.TaskGroup()))
            stack.callback(lambda: cluster.pause(*cluster._listeners))
            for broker_id in range(brokers):
                cache = MetadataCache(broker_id)
                cluster.admins[broker_id] = await stack.enter_async_context(
                    ClusterAdmin.running(controller, cache)
                )
                controller.register(registration(broker_id))
            cluster.resume(*range(brokers))
            await cluster.settle()
            yield cluster

    def pause(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self._listeners.pop(broker_id).cancel()

    def resume(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self._listeners[broker_id] = self._tasks.create_task(self._listen(self.admins[broker_id]))

    async def settle(self) -> None:
        """Wait until the brokers have the latest image."""
        for _ in range(5):
            await asyncio.sleep(0)

    def partition(self, topic_partition: TopicPartition) -> PartitionState:
        state = self.controller.image.partition(topic_partition)
        assert state is not None
        return state

    async def _listen(self, admin: ClusterAdmin) -> None:
        while True:
            image = await self.controller.image_after(admin.cache.image.version)
            admin.image_applied(admin.cache.update(image))
