"""Static members (KIP-345): clients change, the member stays."""

import asyncio

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.requests import MemberIdentity
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.conftest import Pair
from tests.examples.broker.group.group_client import (
    GROUP,
    REBALANCE,
    SESSION,
    TICK,
    Client,
    MemoryLog,
    form_group,
    members_of,
    send,
    settled,
    settles,
    start,
    state_of,
    stored,
    waiting,
)


async def static_pair(coordinator: GroupCoordinator, *, session: float = SESSION) -> Pair:
    """Return a leader and a follower in a stable group."""
    clients = [Client(coordinator, instance=name, session=session) for name in ("one", "two")]
    await form_group(*clients)
    leader, follower = sorted(clients, key=lambda client: not client.leads)
    return leader, follower


@pytest.fixture
async def pair(coordinator: GroupCoordinator) -> Pair:
    return await static_pair(coordinator)


def restarted(client: Client) -> Client:
    return Client(
        client.coordinator, instance=client.instance, protocols=client.protocols, session=client.session
    )


async def test_a_static_member_joins_in_one_step(coordinator: GroupCoordinator) -> None:
    joined = await Client(coordinator, instance="one").join_once()
    assert joined.error is ErrorCode.none
    assert joined.member_id.startswith("one-")
    assert [member.group_instance_id for member in joined.members] == ["one"]


async def test_a_restarted_follower_keeps_its_assignment_without_a_rebalance(
    coordinator: GroupCoordinator, leader: Client, follower: Client
) -> None:
    again = restarted(follower)
    joined = await settles(again.join())
    assert (joined.error, joined.generation_id, joined.members) == (ErrorCode.none, 1, ())
    assert again.member_id != follower.member_id
    assert (await again.sync()).assignment == follower.member_id.encode()
    leader.heartbeat()
    again.heartbeat()
    assert waiting(coordinator) == {"heartbeat": 2}


@pytest.mark.parametrize("request_name", ["heartbeat", "join", "sync", "leave", "commit"])
async def test_the_client_that_was_replaced_is_fenced(request_name: str, follower: Client) -> None:
    await restarted(follower).join()
    assert await send(follower, request_name) is ErrorCode.fenced_instance_id


async def test_a_restarted_leader_learns_that_it_leads_and_must_not_assign(leader: Client) -> None:
    joined = await restarted(leader).join()
    assert joined.skip_assignment
    assert joined.leader_id == joined.member_id
    assert {member.group_instance_id for member in joined.members} == {"one", "two"}


async def test_a_restarted_leader_with_an_old_client_does_not_learn_that_it_leads(leader: Client) -> None:
    joined = await restarted(leader).join_once(supports_skip_assignment=False)
    assert (joined.error, joined.leader_id, joined.members) == (ErrorCode.none, leader.member_id, ())
    assert not joined.skip_assignment


async def test_the_new_id_of_a_static_member_is_stored_before_the_answer(
    coordinator: GroupCoordinator, log: MemoryLog, follower: Client
) -> None:
    log.appended.clear()
    again = restarted(follower)
    joining = await start(again.join())
    assert not joining.done()
    log.appended.set()
    await joining
    kept = stored(log, coordinator.partition_for(GROUP))[GROUP].members[again.member_id]
    assert kept.assignment == follower.member_id.encode()


async def test_a_new_id_that_the_log_refuses_is_an_error_and_the_next_join_gets_another(
    coordinator: GroupCoordinator, log: MemoryLog, follower: Client
) -> None:
    log.error = ErrorCode.not_enough_replicas
    again = restarted(follower)
    assert (await again.join()).error is ErrorCode.coordinator_not_available
    log.error = ErrorCode.none
    assert (await again.join()).error is ErrorCode.none
    assert (await again.sync()).assignment == follower.member_id.encode()


async def test_a_rebalance_includes_a_restarted_member_whose_new_id_is_being_stored(
    coordinator: GroupCoordinator, log: MemoryLog, leader: Client, follower: Client
) -> None:
    log.appended.clear()
    joining = await start(restarted(follower).join())
    newcomer = await start(Client(coordinator, instance="three").join())
    log.appended.set()
    await settled()
    assert not joining.done(), "the generation that it could go on in is over"
    joins = await asyncio.gather(joining, newcomer, leader.join())
    assert {joined.generation_id for joined in joins} == {2}


async def test_a_restarted_member_that_changes_the_protocol_makes_the_group_rebalance(
    coordinator: GroupCoordinator,
) -> None:
    both = (("range", b"r"), ("sticky", b"s"))
    one, two = (Client(coordinator, instance=name, protocols=both) for name in ("one", "two"))
    await form_group(one, two)
    again = restarted(two)
    again.protocols = both[1:]
    joining = await start(again.join())
    assert state_of(coordinator) == "PreparingRebalance"
    await one.join()
    assert (await joining).protocol_name == "sticky"


async def test_a_member_that_restarts_during_the_sync_makes_the_group_rebalance(
    coordinator: GroupCoordinator,
) -> None:
    one, two = (Client(coordinator, instance=name) for name in ("one", "two"))
    await asyncio.gather(*[await start(client.join()) for client in (one, two)])
    syncing = await start(two.sync())
    joining = await start(restarted(two).join())
    assert (await syncing).error is ErrorCode.fenced_instance_id
    assert state_of(coordinator) == "PreparingRebalance"
    await one.join()
    assert (await joining).generation_id == 2


async def test_a_static_member_that_restarts_without_having_synced_is_still_waited_for(
    coordinator: GroupCoordinator,
) -> None:
    one, two = (Client(coordinator, instance=name, session=2 * REBALANCE) for name in ("one", "two"))
    await asyncio.gather(*[await start(client.join()) for client in (one, two)])
    await one.sync()
    await restarted(two).join()
    assert waiting(coordinator) == {"sync": 1, "heartbeat": 2}
    await asyncio.sleep(REBALANCE + TICK)
    assert members_of(coordinator) == [one.identity]


async def test_a_static_member_that_does_not_rejoin_stays_until_its_session_times_out(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    leader, follower = await static_pair(coordinator, session=1.5 * REBALANCE)
    began = virtual_time.time()
    joined = await leader.join()
    assert virtual_time.time() == began + REBALANCE
    assert {member.group_instance_id for member in joined.members} == {"one", "two"}
    await leader.sync()
    await asyncio.sleep(REBALANCE / 2 - TICK)
    assert len(members_of(coordinator)) == 2
    await asyncio.sleep(2 * TICK)
    assert members_of(coordinator) == [leader.identity]
    assert await send(follower, "heartbeat") is ErrorCode.unknown_member_id


async def test_a_rebalance_of_static_members_waits_again_when_none_has_rejoined(
    coordinator: GroupCoordinator,
) -> None:
    leader, follower = await static_pair(coordinator, session=2.5 * REBALANCE)
    dynamic = Client(coordinator)
    joining = await start(dynamic.join())
    assert dynamic.leave() is ErrorCode.none
    assert (await joining).error is ErrorCode.unknown_member_id
    await asyncio.sleep(1.5 * REBALANCE)
    assert state_of(coordinator) == "PreparingRebalance"
    joins = await asyncio.gather(leader.join(), follower.join())
    assert {joined.generation_id for joined in joins} == {2}


async def test_an_administrator_removes_a_static_member_by_its_instance_id(
    coordinator: GroupCoordinator,
) -> None:
    await static_pair(coordinator)
    assert coordinator.leave(GROUP, [MemberIdentity("", "two"), MemberIdentity("", "three")]) == [
        ErrorCode.none,
        ErrorCode.unknown_member_id,
    ]
    assert [identity.group_instance_id for identity in members_of(coordinator)] == ["one"]


async def test_a_pending_dynamic_members_id_is_invalid_for_a_static_member(
    coordinator: GroupCoordinator,
) -> None:
    newcomer = await Client(coordinator).join_once()
    impostor = MemberIdentity(newcomer.member_id, "one")
    assert await send(Client(coordinator), "join", member=impostor) is ErrorCode.unknown_member_id
