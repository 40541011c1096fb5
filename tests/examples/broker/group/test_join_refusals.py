"""Joins that are refused, and full groups."""

import asyncio

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.group.config import GroupConfig
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.requests import MemberIdentity
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.conftest import Coordinate
from tests.examples.broker.group.group_client import (
    GROUP,
    Client,
    form_group,
    start,
    waiting,
)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"session_timeout": 5.999}, ErrorCode.invalid_session_timeout),
        ({"session_timeout": 1800.001}, ErrorCode.invalid_session_timeout),
        ({"protocol_type": ""}, ErrorCode.inconsistent_group_protocol),
        ({"protocols": ()}, ErrorCode.inconsistent_group_protocol),
        ({"member": MemberIdentity("stranger")}, ErrorCode.unknown_member_id),
    ],
)
async def test_an_invalid_join_is_refused_and_leaves_no_group(
    coordinator: GroupCoordinator, changes: dict[str, object], error: ErrorCode
) -> None:
    assert (await Client(coordinator).join_once(**changes)).error is error
    assert coordinator.list_groups() == []
    assert waiting(coordinator) == {}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"protocol_type": "connect"}, ErrorCode.inconsistent_group_protocol),
        ({"protocols": (("sticky", b""),)}, ErrorCode.inconsistent_group_protocol),
        ({"member": MemberIdentity("stranger")}, ErrorCode.unknown_member_id),
        ({"member": MemberIdentity("stranger", "instance")}, ErrorCode.unknown_member_id),
    ],
)
async def test_a_join_that_does_not_fit_the_group_is_refused_and_leaves_it_alone(
    coordinator: GroupCoordinator, changes: dict[str, object], error: ErrorCode
) -> None:
    await form_group(Client(coordinator))
    assert (await Client(coordinator).join_once(**changes)).error is error
    assert coordinator.describe_group(GROUP).state == "Stable"


async def test_a_full_group_accepts_no_member_and_keeps_its_own(coordinator: GroupCoordinator) -> None:
    clients = [Client(coordinator) for _ in range(4)]
    await form_group(*clients)
    assert (await Client(coordinator).join_once()).error is ErrorCode.group_max_size_reached
    (leader,) = [client for client in clients if client.leads]
    rejoining = await start(leader.join())
    await asyncio.gather(*(client.join() for client in clients if client is not leader))
    assert (await rejoining).error is ErrorCode.none


async def test_pending_joins_count_for_the_maximum_size(coordinator: GroupCoordinator) -> None:
    clients = [Client(coordinator) for _ in range(4)]
    joins = [await start(client.join()) for client in clients]
    assert (await Client(coordinator).join_once()).error is ErrorCode.group_max_size_reached
    assert {result.error for result in await asyncio.gather(*joins)} == {ErrorCode.none}


async def test_when_a_full_group_rebalances_the_last_member_to_rejoin_is_refused(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    clients = [Client(coordinator) for _ in range(4)]
    await form_group(*clients)
    began = virtual_time.time()
    clients.sort(key=lambda client: not client.leads)
    newcomer = Client(coordinator)
    joins = [await start(client.join()) for client in (clients[0], newcomer, *clients[1:3])]
    assert (await clients[3].join()).error is ErrorCode.group_max_size_reached
    assert {result.error for result in await asyncio.gather(*joins)} == {ErrorCode.none}
    assert virtual_time.time() == began, "it is not waited for either"
    assert clients[3].leave() is ErrorCode.unknown_member_id


async def test_a_join_at_another_broker_is_answered_not_coordinator(coordinate: Coordinate) -> None:
    coordinator = await coordinate(GroupConfig())
    assert (await Client(coordinator).join_once()).error is ErrorCode.not_coordinator
