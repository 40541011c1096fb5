"""Sessions of members: what extends them, when they expire, and how a member leaves."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.config import GroupConfig
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.requests import MemberIdentity
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.conftest import Coordinate
from tests.examples.broker.group.group_client import (
    GROUP,
    INITIAL_DELAY,
    REBALANCE,
    SESSION,
    Client,
    form_group,
    start,
    waiting,
)

TICK = 0.001


def refusal(client: Client) -> ErrorCode:
    try:
        client.heartbeat()
    except ApiError as error:
        return error.code
    return ErrorCode.none


def members(coordinator: GroupCoordinator) -> int:
    return len(coordinator.describe_group(GROUP).members)


async def test_a_member_without_heartbeats_is_removed_at_its_session_timeout_and_not_before(
    coordinator: GroupCoordinator,
) -> None:
    client = Client(coordinator)
    await form_group(client)
    await asyncio.sleep(SESSION - TICK)
    assert members(coordinator) == 1
    await asyncio.sleep(2 * TICK)
    assert members(coordinator) == 0
    assert coordinator.describe_group(GROUP).state == "Empty"
    assert waiting(coordinator) == {}
    assert refusal(client) is ErrorCode.unknown_member_id


async def test_the_expiration_of_a_member_makes_the_others_rebalance(coordinator: GroupCoordinator) -> None:
    silent, alive = Client(coordinator), Client(coordinator)
    await form_group(silent, alive)
    await asyncio.sleep(SESSION / 2)
    alive.heartbeat()
    await asyncio.sleep(SESSION / 2 + TICK)
    assert refusal(alive) is ErrorCode.rebalance_in_progress
    await form_group(alive)
    assert (alive.generation_id, alive.leads) == (2, True)


async def beat(client: Client) -> None:
    client.heartbeat()


async def commit(client: Client) -> None:
    assert await client.commit(TopicPartition("events", 0), 1) is ErrorCode.none


async def sync(client: Client) -> None:
    assert (await client.sync()).error is ErrorCode.none


async def join(client: Client) -> None:
    assert (await client.join()).error is ErrorCode.none
    assert (await client.sync()).error is ErrorCode.none


@pytest.mark.parametrize("sign_of_life", [beat, commit, sync, join])
async def test_every_request_of_a_member_extends_its_session(
    coordinator: GroupCoordinator, sign_of_life: Callable[[Client], Awaitable[None]]
) -> None:
    client = Client(coordinator)
    await form_group(client)
    for _ in range(3):
        await asyncio.sleep(SESSION - TICK)
        await sign_of_life(client)
    assert waiting(coordinator) == {"heartbeat": 1}
    await asyncio.sleep(SESSION - TICK)
    assert members(coordinator) == 1
    await asyncio.sleep(2 * TICK)
    assert members(coordinator) == 0


async def test_a_repeated_join_of_a_follower_extends_its_session(
    coordinator: GroupCoordinator,
) -> None:
    clients = [Client(coordinator, session=session) for session in (5 * SESSION, SESSION)]
    joins = [await start(client.join_and_sync()) for client in clients]
    await asyncio.gather(*joins)
    await asyncio.sleep(SESSION - TICK)
    assert (await clients[1].join()).generation_id == 1
    await asyncio.sleep(SESSION - TICK)
    assert members(coordinator) == 2


async def test_a_sync_during_a_rebalance_extends_the_session(
    coordinator: GroupCoordinator,
) -> None:
    client = Client(coordinator)
    await form_group(client)
    joining = await start(Client(coordinator).join())
    await asyncio.sleep(SESSION - TICK)
    assert (await client.sync()).error is ErrorCode.rebalance_in_progress
    await asyncio.sleep(SESSION - TICK)
    assert members(coordinator) == 2
    assert (await client.join()).error is ErrorCode.none
    await joining


async def test_each_heartbeat_completes_one_operation_and_schedules_the_next(
    coordinator: GroupCoordinator,
) -> None:
    client = Client(coordinator)
    await form_group(client)
    before = coordinator.statistics()["heartbeat"]
    for _ in range(5):
        client.heartbeat()
    after = coordinator.statistics()["heartbeat"]
    assert (after.pending, after.completed - before.completed, after.expired) == (1, 5, 0)


async def test_a_member_that_waits_for_the_others_to_join_does_not_expire(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    slow, waits = Client(coordinator, session=2 * REBALANCE), Client(coordinator, session=6)
    await form_group(slow)
    joined = await waits.join()
    assert virtual_time.time() >= REBALANCE
    assert joined.error is ErrorCode.none


async def test_a_member_that_waits_for_its_assignment_does_not_expire(coordinator: GroupCoordinator) -> None:
    clients = [Client(coordinator, session=session) for session in (40, 6)]
    joins = [await start(client.join()) for client in clients]
    await asyncio.gather(*joins)
    leader, follower = clients
    syncing = await start(follower.sync())
    await asyncio.sleep(30)
    await leader.sync()
    assert (await syncing).error is ErrorCode.none
    assert members(coordinator) == 2


async def test_a_member_may_send_heartbeats_while_the_group_syncs(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator)
    await client.join()
    assert refusal(client) is ErrorCode.none


async def test_heartbeats_that_do_not_fit_the_group_are_refused(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator)
    client.member_id = "stranger"
    assert refusal(client) is ErrorCode.unknown_member_id, "there is no such group"
    client.member_id = ""
    await form_group(client)
    client.generation_id -= 1
    assert refusal(client) is ErrorCode.illegal_generation
    client.member_id = "stranger"
    assert refusal(client) is ErrorCode.unknown_member_id
    with pytest.raises(ApiError, match="INVALID_GROUP_ID"):
        coordinator.heartbeat("", 1, client.identity)


async def test_a_leaving_member_makes_the_others_rebalance_at_once(coordinator: GroupCoordinator) -> None:
    leaves, stays = Client(coordinator), Client(coordinator)
    await form_group(leaves, stays)
    assert leaves.leave() is ErrorCode.none
    assert refusal(stays) is ErrorCode.rebalance_in_progress
    assert refusal(leaves) is ErrorCode.unknown_member_id
    await form_group(stays)
    assert stays.leave() is ErrorCode.none
    assert coordinator.describe_group(GROUP).state == "Empty"
    assert waiting(coordinator) == {}


async def test_a_rebalance_does_not_wait_for_a_member_that_has_left(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    leaves, stays = Client(coordinator), Client(coordinator)
    await form_group(leaves, stays)
    began = virtual_time.time()
    stays.protocols = (("range", b"other topics"),)
    joining = await start(stays.join())
    assert leaves.leave() is ErrorCode.none
    assert (await joining).error is ErrorCode.none
    assert virtual_time.time() == began


async def test_a_leaving_members_pending_request_is_answered(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator)
    joining = await start(client.join())
    assert client.leave() is ErrorCode.none
    assert (await joining).error is ErrorCode.unknown_member_id
    await asyncio.sleep(3)
    assert coordinator.describe_group(GROUP).state == "Empty"
    assert waiting(coordinator) == {}


async def test_a_group_whose_members_leave_during_the_initial_delay_is_empty_afterwards(
    coordinator: GroupCoordinator,
) -> None:
    clients = [Client(coordinator) for _ in range(2)]
    joins = [await start(client.join()) for client in clients]
    for client in clients:
        assert client.leave() is ErrorCode.none
    assert [result.error for result in await asyncio.gather(*joins)] == [ErrorCode.unknown_member_id] * 2
    assert waiting(coordinator) == {"join": 1}
    await asyncio.sleep(INITIAL_DELAY + TICK)
    assert (coordinator.describe_group(GROUP).state, waiting(coordinator)) == ("Empty", {})


async def test_a_pending_member_may_leave(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    member, newcomer = Client(coordinator, session=2 * SESSION), Client(coordinator)
    await form_group(member)
    newcomer.member_id = (await newcomer.join_once()).member_id
    joining = await start(member.join())
    began = virtual_time.time()
    assert newcomer.leave() is ErrorCode.none
    await joining
    assert virtual_time.time() == began
    assert waiting(coordinator) == {"sync": 1, "heartbeat": 1}


async def test_several_members_leave_at_once_and_each_gets_an_answer_of_its_own(
    coordinator: GroupCoordinator,
) -> None:
    clients = [Client(coordinator) for _ in range(3)]
    await form_group(*clients)
    identities = [client.identity for client in clients[:2]]
    assert coordinator.leave(GROUP, [identities[0], MemberIdentity("stranger"), identities[1]]) == [
        ErrorCode.none,
        ErrorCode.unknown_member_id,
        ErrorCode.none,
    ]
    assert [m.identity for m in coordinator.describe_group(GROUP).members] == [clients[2].identity]


async def test_leaving_an_unknown_group_is_refused(
    coordinator: GroupCoordinator, coordinate: Coordinate
) -> None:
    assert Client(coordinator).leave() is ErrorCode.unknown_member_id
    with pytest.raises(ApiError, match="INVALID_GROUP_ID"):
        coordinator.leave("", [MemberIdentity("anybody")])
    elsewhere = await coordinate(GroupConfig())
    with pytest.raises(ApiError, match="NOT_COORDINATOR"):
        Client(elsewhere).leave()
