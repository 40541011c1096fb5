"""Requests that a coordinator refuses, by the state of the group and of the coordinator."""

import asyncio
from typing import Any

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupConfig, GroupCoordinator
from examples.broker.group.requests import MemberIdentity
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.conftest import Coordinate
from tests.examples.broker.group.group_client import (
    GROUP,
    Client,
    all_join,
    form_group,
    send,
    settles,
    start,
    state_of,
    waiting,
)

NO_GROUP = {"group_id": ""}
OTHER_GROUP = {"group_id": "other"}
STRANGER = {"member": MemberIdentity("stranger")}
STATIC_STRANGER = {"member": MemberIdentity("stranger", "instance")}
OLD_GENERATION = {"generation_id": 0}
NEXT_GENERATION = {"generation_id": 2}


@pytest.mark.parametrize(
    ("request_name", "changes", "error"),
    [
        ("join", NO_GROUP, ErrorCode.invalid_group_id),
        ("join", {"session_timeout": 5.999}, ErrorCode.invalid_session_timeout),
        ("join", {"session_timeout": 1800.001}, ErrorCode.invalid_session_timeout),
        ("join", {"protocol_type": ""}, ErrorCode.inconsistent_group_protocol),
        ("join", {"protocols": ()}, ErrorCode.inconsistent_group_protocol),
        ("join", STRANGER, ErrorCode.unknown_member_id),
        ("sync", {}, ErrorCode.unknown_member_id),
        ("heartbeat", {}, ErrorCode.unknown_member_id),
        ("leave", {}, ErrorCode.unknown_member_id),
        ("commit", {"generation_id": 3}, ErrorCode.group_id_not_found),
        ("delete offsets", {}, ErrorCode.group_id_not_found),
        ("delete", {}, ErrorCode.group_id_not_found),
    ],
)
async def test_a_request_that_no_group_fits_is_refused_and_leaves_no_group(
    coordinator: GroupCoordinator, request_name: str, changes: dict[str, Any], error: ErrorCode
) -> None:
    assert await send(Client(coordinator), request_name, **changes) is error
    assert coordinator.list_groups() == []
    assert waiting(coordinator) == {}


@pytest.mark.parametrize(
    ("request_name", "changes", "error"),
    [
        ("join", {"protocol_type": "connect"}, ErrorCode.inconsistent_group_protocol),
        ("join", {"protocols": (("sticky", b""),)}, ErrorCode.inconsistent_group_protocol),
        ("join", STRANGER, ErrorCode.unknown_member_id),
        ("join", STATIC_STRANGER, ErrorCode.unknown_member_id),
        ("sync", NO_GROUP, ErrorCode.invalid_group_id),
        ("sync", OTHER_GROUP, ErrorCode.unknown_member_id),
        ("sync", STRANGER, ErrorCode.unknown_member_id),
        ("sync", OLD_GENERATION, ErrorCode.illegal_generation),
        ("sync", {"protocol_type": "connect"}, ErrorCode.inconsistent_group_protocol),
        ("sync", {"protocol_name": "sticky"}, ErrorCode.inconsistent_group_protocol),
        ("sync", {"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.none),
        ("heartbeat", NO_GROUP, ErrorCode.invalid_group_id),
        ("heartbeat", STRANGER, ErrorCode.unknown_member_id),
        ("heartbeat", STRANGER | OLD_GENERATION, ErrorCode.unknown_member_id),
        ("heartbeat", OLD_GENERATION, ErrorCode.illegal_generation),
        ("leave", NO_GROUP, ErrorCode.invalid_group_id),
        ("leave", STRANGER, ErrorCode.unknown_member_id),
        ("commit", STRANGER, ErrorCode.unknown_member_id),
        ("commit", STATIC_STRANGER, ErrorCode.unknown_member_id),
        ("commit", NEXT_GENERATION, ErrorCode.illegal_generation),
        ("delete offsets", NO_GROUP, ErrorCode.invalid_group_id),
        ("delete", {}, ErrorCode.non_empty_group),
    ],
)
async def test_a_request_that_does_not_fit_the_group_is_refused_and_leaves_it_alone(
    member: Client, request_name: str, changes: dict[str, Any], error: ErrorCode
) -> None:
    assert await send(member, request_name, **changes) is error
    assert [group.group_id for group in member.coordinator.list_groups()] == [GROUP]
    assert state_of(member.coordinator) == "Stable"
    assert member.coordinator.fetch_offsets(GROUP) == {}


REBALANCE_IN_PROGRESS = ErrorCode.rebalance_in_progress


@pytest.mark.parametrize(
    ("request_name", "rebalancing", "syncing"),
    [
        ("sync", REBALANCE_IN_PROGRESS, ErrorCode.none),
        ("heartbeat", REBALANCE_IN_PROGRESS, ErrorCode.none),
        ("commit", ErrorCode.none, REBALANCE_IN_PROGRESS),
        ("delete", ErrorCode.non_empty_group, ErrorCode.non_empty_group),
    ],
)
async def test_a_request_during_a_rebalance_is_answered_as_the_member_has_to_go_on(
    member: Client, request_name: str, rebalancing: ErrorCode, syncing: ErrorCode
) -> None:
    """Before a member rejoins, it may commit the offsets that it has read."""
    joining = await start(Client(member.coordinator).join())
    assert state_of(member.coordinator) == "PreparingRebalance"
    assert await send(member, request_name) is rebalancing
    await asyncio.gather(member.join(), joining)
    assert state_of(member.coordinator) == "CompletingRebalance"
    assert await send(member, request_name) is syncing


@pytest.mark.parametrize(
    "request_name",
    ["join", "sync", "heartbeat", "leave", "commit", "fetch offsets", "delete offsets", "describe", "delete"],
)
async def test_every_request_to_another_broker_is_answered_not_coordinator(
    coordinate: Coordinate, request_name: str
) -> None:
    elsewhere = await coordinate(GroupConfig())
    assert await send(Client(elsewhere), request_name) is ErrorCode.not_coordinator
    assert elsewhere.list_groups() == []


# Full groups. The largest size is 4.


async def test_a_full_group_accepts_no_member_and_keeps_its_own(coordinator: GroupCoordinator) -> None:
    clients = [Client(coordinator) for _ in range(4)]
    await form_group(*clients)
    assert await send(Client(coordinator), "join") is ErrorCode.group_max_size_reached
    leader, *followers = sorted(clients, key=lambda client: not client.leads)
    rejoining = await start(leader.join())
    await asyncio.gather(*(client.join() for client in followers))
    assert (await rejoining).error is ErrorCode.none


async def test_pending_joins_count_for_the_maximum_size(coordinator: GroupCoordinator) -> None:
    joins = [await start(Client(coordinator).join()) for _ in range(4)]
    assert await send(Client(coordinator), "join") is ErrorCode.group_max_size_reached
    assert {result.error for result in await asyncio.gather(*joins)} == {ErrorCode.none}


async def test_when_a_full_group_rebalances_the_last_member_to_rejoin_is_refused(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    clients = await all_join(*(Client(coordinator) for _ in range(4)))
    await asyncio.gather(*(client.sync() for client in clients))
    newcomer, late = Client(coordinator), clients[3]
    joins = [await start(client.join()) for client in (clients[0], newcomer, *clients[1:3])]
    assert (await late.join()).error is ErrorCode.group_max_size_reached
    answers = await settles(asyncio.gather(*joins))
    assert {result.error for result in answers} == {ErrorCode.none}, "it is not waited for either"
    assert late.leave() is ErrorCode.unknown_member_id
