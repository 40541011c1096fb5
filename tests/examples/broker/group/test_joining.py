"""Joining a group: the initial delay, generations, leaders and clients that disconnect."""

import asyncio
import logging

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupConfig, GroupCoordinator
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.conftest import Coordinate, Pair
from tests.examples.broker.group.group_client import (
    GROUP,
    INITIAL_DELAY,
    REBALANCE,
    SESSION,
    TICK,
    Client,
    all_join,
    form_group,
    lead,
    send,
    settled,
    settles,
    start,
    state_of,
    waiting,
)


async def test_members_that_join_within_the_initial_delay_form_one_generation_with_a_leader(
    coordinator: GroupCoordinator,
) -> None:
    clients = await all_join(*(Client(coordinator, "reader") for _ in range(3)))
    leader, *followers = clients
    for client in clients:
        joined = client.joined
        assert (joined.generation_id, joined.protocol_type, joined.protocol_name) == (1, "consumer", "range")
        assert (joined.leader_id, joined.member_id) == (leader.member_id, client.member_id)
        assert joined.member_id.startswith("reader-")
    assert {(member.member_id, member.metadata) for member in leader.joined.members} == {
        (client.member_id, b"subscription") for client in clients
    }
    assert [client.joined.members for client in followers] == [(), ()]
    await asyncio.gather(*(client.sync() for client in clients))
    assert (state_of(coordinator), waiting(coordinator)) == ("Stable", {"heartbeat": 3})


async def test_a_rebalance_is_logged_from_its_cause_to_its_end(
    coordinator: GroupCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(coordinator)
    with caplog.at_level(logging.INFO, "examples.broker.group"):
        await form_group(client)
    began, joined, assigned = caplog.text.splitlines()
    assert began.endswith(f"begins a rebalance: {client.member_id} joins")
    assert joined.endswith("CompletingRebalance generation 1, 1 members>: the members have joined")
    assert assigned.endswith("Stable generation 1, 1 members>: the members get their assignments")


async def test_the_initial_delay_is_extended_while_members_keep_joining(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    joins = [await start(Client(coordinator).join())]
    await asyncio.sleep(2)
    joins.append(await start(Client(coordinator).join()))
    assert {result.generation_id for result in await asyncio.gather(*joins)} == {1}
    assert virtual_time.time() == 2 * INITIAL_DELAY


async def test_the_initial_delay_ends_at_the_rebalance_timeout_at_the_latest(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    async def joined() -> float:
        await Client(coordinator, rebalance=7).join()
        return virtual_time.time()

    joins = []
    for _ in range(4):
        joins.append(await start(joined()))
        await asyncio.sleep(1.7)
    assert set(await asyncio.gather(*joins)) == {7}


async def test_without_an_initial_delay_the_first_member_is_answered_at_once(coordinate: Coordinate) -> None:
    coordinator = await coordinate(GroupConfig(group_initial_rebalance_delay=0))
    await lead(coordinator, coordinator.partition_for(GROUP))
    await settles(form_group(Client(coordinator)))


async def test_a_new_member_makes_a_stable_group_rebalance_and_waits_for_the_others(member: Client) -> None:
    newcomer = Client(member.coordinator)
    joining = await start(newcomer.join_and_sync())
    assert state_of(member.coordinator) == "PreparingRebalance"
    assert waiting(member.coordinator) == {"join": 2, "heartbeat": 2}, "the group and the newcomer wait"
    await settles(member.join_and_sync())
    await joining
    assert (member.generation_id, newcomer.generation_id) == (2, 2)
    assert member.leads, "leadership stays with who rejoins"


async def test_a_member_that_does_not_rejoin_is_dropped_at_the_rebalance_timeout(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    first, second = (Client(coordinator, session=2 * REBALANCE) for _ in range(2))
    await form_group(first)
    began = virtual_time.time()
    joined = await second.join()
    assert virtual_time.time() == began + REBALANCE
    assert joined.leader_id == second.member_id
    assert await send(first, "heartbeat") is ErrorCode.unknown_member_id


async def test_a_rebalance_waits_for_a_pending_member_until_its_session_times_out(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    client = Client(coordinator, session=2 * SESSION)
    await form_group(client)
    began = virtual_time.time()
    assert await send(Client(coordinator), "join") is ErrorCode.member_id_required
    assert waiting(coordinator) == {"heartbeat": 2}
    await client.join()
    assert virtual_time.time() == began + SESSION


async def test_expired_pending_members_leave_no_group(coordinator: GroupCoordinator) -> None:
    assert await send(Client(coordinator), "join") is ErrorCode.member_id_required
    await asyncio.sleep(SESSION - TICK)
    assert [group.group_id for group in coordinator.list_groups()] == [GROUP]
    await asyncio.sleep(2 * TICK)
    assert coordinator.list_groups() == []
    assert waiting(coordinator) == {}


async def test_an_old_client_joins_in_one_step_and_alone_after_the_initial_delay(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    joined = await Client(coordinator).join_once(requires_known_member_id=False)
    assert (joined.error, joined.generation_id) == (ErrorCode.none, 1)
    assert virtual_time.time() == INITIAL_DELAY


async def test_the_common_protocol_that_most_members_prefer_is_selected(
    coordinator: GroupCoordinator,
) -> None:
    both = (("sticky", b"s"), ("range", b"r"))
    offers = [(("odd", b"o"), *both), both, both[::-1]]
    clients = [Client(coordinator, protocols=protocols) for protocols in offers]
    await form_group(*clients)
    assert {client.joined.protocol_name for client in clients} == {"sticky"}
    (leader,) = [client for client in clients if client.leads]
    assert {member.metadata for member in leader.joined.members} == {b"s"}


async def test_a_second_join_answers_the_pending_one_rebalance_in_progress(
    coordinator: GroupCoordinator,
) -> None:
    client = Client(coordinator)
    client.member_id = (await client.join_once()).member_id
    earlier = await start(client.join_once())
    later = await start(client.join_once())
    assert (await earlier).error is ErrorCode.rebalance_in_progress
    assert (await later).error is ErrorCode.none


async def test_a_repeated_join_gets_the_same_answer(pair: Pair) -> None:
    answers = [client.joined for client in pair]
    assert [await client.join() for client in pair] == answers, "while the group syncs"
    await asyncio.gather(*(client.sync() for client in pair))
    assert await pair[1].join() == answers[1], "a follower, also when it is stable"
    assert state_of(pair[1].coordinator) == "Stable"


@pytest.mark.parametrize(("rejoins", "topics"), [(0, b"subscription"), (1, b"other topics")])
async def test_a_leader_that_rejoins_or_another_subscription_makes_a_stable_group_rebalance(
    stable_pair: Pair, rejoins: int, topics: bytes
) -> None:
    leader = stable_pair[0]
    stable_pair[rejoins].protocols = (("range", topics),)
    joining = await start(stable_pair[rejoins].join())
    assert state_of(leader.coordinator) == "PreparingRebalance"
    await stable_pair[1 - rejoins].join()
    assert (await joining).generation_id == 2
    assert {member.metadata for member in leader.joined.members} == {b"subscription", topics}


async def test_a_client_that_disconnects_during_its_join_is_not_in_the_generation(
    coordinator: GroupCoordinator,
) -> None:
    gone, stays = Client(coordinator), Client(coordinator)
    vanishing = await start(gone.join())
    joining = await start(stays.join())
    vanishing.cancel()
    await settled()
    assert waiting(coordinator) == {"join": 2, "heartbeat": 2}
    assert [member.member_id for member in (await joining).members] == [stays.member_id]
    assert waiting(coordinator) == {"sync": 1, "heartbeat": 1}


async def test_a_member_whose_client_disconnects_during_its_join_expires_at_its_session_timeout(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    stays, gone = Client(coordinator, session=SESSION + 5), Client(coordinator)
    await form_group(stays)
    began = virtual_time.time()
    vanishing = await start(gone.join())
    vanishing.cancel()
    await settled()
    await stays.join()
    assert virtual_time.time() == began + SESSION
    assert [member.member_id for member in stays.joined.members] == [stays.member_id]
