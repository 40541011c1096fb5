"""A running group coordinator in virtual time."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from examples.broker.group.coordinator import GroupConfig, GroupCoordinator
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.group_client import (
    INITIAL_DELAY,
    Client,
    Hosts,
    MemoryLog,
    all_join,
    form_group,
    lead,
)

CONFIG = GroupConfig(group_initial_rebalance_delay=INITIAL_DELAY, group_max_size=4)

Pair = tuple[Client, ...]
Coordinate = Callable[[GroupConfig], Awaitable[GroupCoordinator]]


@pytest.fixture
async def log(virtual_time: VirtualTimeLoop) -> MemoryLog:
    return MemoryLog()


@pytest.fixture
async def coordinate(log: MemoryLog) -> AsyncIterator[Coordinate]:
    """Starts coordinators on the same log. They lead no partition yet."""
    hosts = Hosts(log)
    yield hosts.coordinate
    await hosts.aclose()


@pytest.fixture
async def coordinator(coordinate: Coordinate) -> GroupCoordinator:
    """A coordinator of all groups."""
    coordinator = await coordinate(CONFIG)
    await lead(coordinator, *range(CONFIG.offsets_topic_partitions))
    return coordinator


@pytest.fixture
async def member(coordinator: GroupCoordinator) -> Client:
    """The only member of a stable group."""
    client = Client(coordinator)
    await form_group(client)
    return client


@pytest.fixture
async def pair(coordinator: GroupCoordinator) -> Pair:
    """A leader and a follower that have joined and not synced."""
    return await all_join(Client(coordinator), Client(coordinator))


@pytest.fixture
def leader(pair: Pair) -> Client:
    return pair[0]


@pytest.fixture
def follower(pair: Pair) -> Client:
    return pair[1]


@pytest.fixture
async def stable_pair(pair: Pair) -> Pair:
    """A leader and a follower in a stable group."""
    for client in pair:
        await client.sync()
    return pair
