"""A running group coordinator in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from examples.broker.group.config import GroupConfig
from examples.broker.group.coordinator import GroupCoordinator
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.group_client import INITIAL_DELAY, MemoryLog, lead

CONFIG = GroupConfig(group_initial_rebalance_delay=INITIAL_DELAY, group_max_size=4)

Coordinate = Callable[[GroupConfig], Awaitable[GroupCoordinator]]


@pytest.fixture
async def log(virtual_time: VirtualTimeLoop) -> MemoryLog:
    return MemoryLog()


@pytest.fixture
async def coordinate(log: MemoryLog) -> AsyncIterator[Coordinate]:
    """Starts coordinators on the same log, which run until the test ends. They lead no partition yet."""
    ended = asyncio.Event()
    hosts: list[asyncio.Task[None]] = []

    async def host(broker_id: int, config: GroupConfig, started: asyncio.Future[GroupCoordinator]) -> None:
        async with GroupCoordinator.running(broker_id, log, config) as coordinator:
            started.set_result(coordinator)
            await ended.wait()

    async def coordinate(config: GroupConfig) -> GroupCoordinator:
        started: asyncio.Future[GroupCoordinator] = asyncio.get_running_loop().create_future()
        hosts.append(asyncio.create_task(host(len(hosts) + 1, config, started)))
        return await started

    yield coordinate
    ended.set()
    await asyncio.gather(*hosts)


@pytest.fixture
async def coordinator(coordinate: Coordinate) -> GroupCoordinator:
    """A coordinator of all groups."""
    coordinator = await coordinate(CONFIG)
    await lead(coordinator, *range(CONFIG.offsets_topic_partitions))
    return coordinator
