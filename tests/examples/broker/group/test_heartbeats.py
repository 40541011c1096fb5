"""Sessions of members: what extends them, when they expire, and how a member leaves."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.requests import MemberIdentity
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.conftest import Pair
from tests.examples.broker.group.group_client import (
    EVENTS,
    GROUP,
    INITIAL_DELAY,
    REBALANCE,
    SESSION,
    TICK,
    Client,
    all_join,
    form_group,
    members_of,
    send,
    settles,
    start,
    state_of,
    waiting,
)


async def test_the_expiration_of_a_member_makes_the_others_rebalance(stable_pair: Pair) -> None:
    silent, alive = stable_pair
    await asyncio.sleep(SESSION / 2)
    alive.heartbeat()
    await asyncio.sleep(SESSION / 2 + TICK)
    assert await send(alive, "heartbeat") is ErrorCode.rebalance_in_progress
    assert await send(silent, "heartbeat") is ErrorCode.unknown_member_id
    await form_group(alive)
    assert (alive.generation_id, alive.leads) == (2, True)


async def beat(client: Client) -> None:
    client.heartbeat()


async def commit(client: Client) -> None:
    assert await client.commit(EVENTS, 1) is ErrorCode.none


async def sync(client: Client) -> None:
    assert (await client.sync()).error is ErrorCode.none


async def join(client: Client) -> None:
    assert (await client.join()).error is ErrorCode.none
    assert (await client.sync()).error is ErrorCode.none


@pytest.mark.parametrize("sign_of_life", [beat, commit, sync, join])
async def test_every_request_of_a_member_extends_its_session_to_its_session_timeout(
    member: Client, sign_of_life: Callable[[Client], Awaitable[None]]
) -> None:
    for _ in range(3):
        await asyncio.sleep(SESSION - TICK)
        await sign_of_life(member)
    assert waiting(member.coordinator) == {"heartbeat": 1}
    await asyncio.sleep(SESSION - TICK)
    assert members_of(member.coordinator) == [member.identity]
    await asyncio.sleep(2 * TICK)
    assert members_of(member.coordinator) == []
    assert (state_of(member.coordinator), waiting(member.coordinator)) == ("Empty", {})


async def test_a_repeated_join_of_a_follower_extends_its_session(coordinator: GroupCoordinator) -> None:
    leader, follower = Client(coordinator, session=5 * SESSION), Client(coordinator)
    await asyncio.gather(*[await start(client.join_and_sync()) for client in (leader, follower)])
    await asyncio.sleep(SESSION - TICK)
    assert (await follower.join()).generation_id == 1
    await asyncio.sleep(SESSION - TICK)
    assert len(members_of(coordinator)) == 2


async def test_a_sync_during_a_rebalance_extends_the_session(member: Client) -> None:
    joining = await start(Client(member.coordinator).join())
    await asyncio.sleep(SESSION - TICK)
    assert (await member.sync()).error is ErrorCode.rebalance_in_progress
    await asyncio.sleep(SESSION - TICK)
    assert len(members_of(member.coordinator)) == 2
    assert (await member.join()).error is ErrorCode.none
    await joining


async def test_a_heartbeat_renews_the_session_and_makes_no_other_operation(member: Client) -> None:
    before = member.coordinator.statistics()["heartbeat"]
    for _ in range(5):
        member.heartbeat()
    assert member.coordinator.statistics()["heartbeat"] == before


async def test_a_member_that_waits_for_the_others_to_join_does_not_expire(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    slow, waits = Client(coordinator, session=2 * REBALANCE), Client(coordinator, session=6)
    await form_group(slow)
    joined = await waits.join()
    assert virtual_time.time() >= REBALANCE
    assert joined.error is ErrorCode.none


async def test_a_member_that_waits_for_its_assignment_does_not_expire(coordinator: GroupCoordinator) -> None:
    leader, follower = Client(coordinator, session=40), Client(coordinator, session=6)
    await asyncio.gather(*[await start(client.join()) for client in (leader, follower)])
    syncing = await start(follower.sync())
    await asyncio.sleep(30)
    await leader.sync()
    assert (await syncing).error is ErrorCode.none
    assert len(members_of(coordinator)) == 2


async def test_a_leaving_member_makes_the_others_rebalance_at_once(
    coordinator: GroupCoordinator, stable_pair: Pair
) -> None:
    leaves, stays = stable_pair
    assert leaves.leave() is ErrorCode.none
    assert await send(stays, "heartbeat") is ErrorCode.rebalance_in_progress
    assert await send(leaves, "heartbeat") is ErrorCode.unknown_member_id
    await form_group(stays)
    assert stays.leave() is ErrorCode.none
    assert (state_of(coordinator), waiting(coordinator)) == ("Empty", {})


async def test_a_rebalance_does_not_wait_for_a_member_that_has_left(stable_pair: Pair) -> None:
    stays, leaves = stable_pair
    joining = await start(stays.join())
    assert leaves.leave() is ErrorCode.none
    assert (await settles(joining)).error is ErrorCode.none


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
    assert (state_of(coordinator), waiting(coordinator)) == ("Empty", {})


async def test_a_pending_member_may_leave(coordinator: GroupCoordinator) -> None:
    member, newcomer = Client(coordinator, session=2 * SESSION), Client(coordinator)
    await form_group(member)
    newcomer.member_id = (await newcomer.join_once()).member_id
    joining = await start(member.join())
    assert newcomer.leave() is ErrorCode.none
    await settles(joining)
    assert waiting(coordinator) == {"sync": 1, "heartbeat": 1}


async def test_several_members_leave_at_once_and_each_gets_an_answer_of_its_own(
    coordinator: GroupCoordinator,
) -> None:
    clients = [Client(coordinator) for _ in range(3)]
    await all_join(*clients)
    one, two, three = (client.identity for client in clients)
    assert coordinator.leave(GROUP, [one, MemberIdentity("stranger"), two]) == [
        ErrorCode.none,
        ErrorCode.unknown_member_id,
        ErrorCode.none,
    ]
    assert members_of(coordinator) == [three]
