"""Assignments: from the leader through the log to all members, and missing assignments."""

import asyncio

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.conftest import Pair
from tests.examples.broker.group.group_client import (
    COORDINATOR_ERRORS,
    GROUP,
    REBALANCE,
    SESSION,
    TICK,
    Client,
    MemoryLog,
    all_join,
    form_group,
    members_of,
    settled,
    start,
    state_of,
    stored,
    waiting,
)


@pytest.fixture
async def patient_pair(coordinator: GroupCoordinator) -> Pair:
    """A leader and a follower that have not synced, with sessions that are longer than a rebalance."""
    return await all_join(*(Client(coordinator, session=2 * REBALANCE) for _ in range(2)))


async def test_a_follower_gets_its_assignment_when_the_leader_has_brought_it(
    coordinator: GroupCoordinator, leader: Client, follower: Client
) -> None:
    syncing = await start(follower.sync())
    assert not syncing.done()
    assert waiting(coordinator) == {"sync": 2, "heartbeat": 2}, "the group and the follower wait"
    assignments = {leader.member_id: b"0", follower.member_id: b"1"}
    assert (await leader.sync(assignments)).assignment == b"0"
    assert (await syncing).assignment == b"1"
    assert ((await syncing).protocol_type, (await syncing).protocol_name) == ("consumer", "range")
    assert waiting(coordinator) == {"heartbeat": 2}


async def test_a_follower_that_syncs_after_the_leader_is_answered_at_once(
    coordinator: GroupCoordinator, leader: Client, follower: Client
) -> None:
    await leader.sync({follower.member_id: b"1"})
    assert waiting(coordinator) == {"sync": 1, "heartbeat": 2}
    assert (await follower.sync()).assignment == b"1"
    assert waiting(coordinator) == {"heartbeat": 2}


async def test_a_member_without_an_assignment_gets_an_empty_one(leader: Client, follower: Client) -> None:
    await leader.sync({"stranger": b"?"})
    synced = await follower.sync()
    assert (synced.error, synced.assignment) == (ErrorCode.none, b"")


async def test_assignments_are_not_answered_before_the_log_has_them(
    coordinator: GroupCoordinator, pair: Pair, log: MemoryLog
) -> None:
    log.appended.clear()
    syncs = [await start(client.sync()) for client in reversed(pair)]
    assert state_of(coordinator) == "CompletingRebalance"
    assert not any(sync.done() for sync in syncs)
    log.appended.set()
    assert {result.error for result in await asyncio.gather(*syncs)} == {ErrorCode.none}
    group = stored(log, coordinator.partition_for(GROUP))[GROUP]
    assert {entry.member_id: entry.assignment for entry in group.members.values()} == {
        client.member_id: client.member_id.encode() for client in pair
    }


@pytest.mark.parametrize(("refusal", "answer"), COORDINATOR_ERRORS)
async def test_an_assignment_that_the_log_refuses_is_an_error_and_the_group_rebalances(
    leader: Client, follower: Client, log: MemoryLog, refusal: ErrorCode, answer: ErrorCode
) -> None:
    syncing = await start(follower.sync())
    log.error = refusal
    assert (await leader.sync()).error is answer
    assert (await syncing).error is answer
    assert state_of(leader.coordinator) == "PreparingRebalance"
    log.error = ErrorCode.none
    await form_group(leader, follower)
    assert leader.generation_id == 2


async def test_an_assignment_stored_after_its_generation_is_not_answered(
    coordinator: GroupCoordinator, leader: Client, log: MemoryLog
) -> None:
    log.appended.clear()
    syncing = await start(leader.sync())
    newcomer = await start(Client(coordinator).join())
    assert (await syncing).error is ErrorCode.rebalance_in_progress
    log.appended.set()
    await settled()
    assert state_of(coordinator) == "PreparingRebalance"
    newcomer.cancel()


async def test_an_assignment_stored_during_the_next_sync_is_not_that_generations(
    coordinator: GroupCoordinator, leader: Client, follower: Client, log: MemoryLog
) -> None:
    log.appended.clear()
    late = await start(leader.sync())
    newcomer = await start(Client(coordinator).join())
    assert (await late).error is ErrorCode.rebalance_in_progress
    await asyncio.gather(leader.join(), follower.join(), newcomer)
    log.appended.set()
    await settled()
    assert state_of(coordinator) == "CompletingRebalance"
    assert (await leader.sync()).assignment == leader.member_id.encode()


async def test_an_assignment_is_stored_even_if_the_leaders_client_disconnects(
    coordinator: GroupCoordinator, leader: Client, follower: Client, log: MemoryLog
) -> None:
    log.appended.clear()
    syncing = await start(leader.sync({follower.member_id: b"1"}))
    syncing.cancel()
    log.appended.set()
    await settled()
    assert state_of(coordinator) == "Stable"
    assert (await follower.sync()).assignment == b"1"


async def test_members_that_do_not_sync_within_the_rebalance_timeout_are_removed(
    patient_pair: Pair, virtual_time: VirtualTimeLoop
) -> None:
    leader, follower = patient_pair
    began = virtual_time.time()
    synced = await follower.sync()
    assert virtual_time.time() == began + REBALANCE
    assert synced.error is ErrorCode.rebalance_in_progress
    assert (await leader.join_once()).error is ErrorCode.unknown_member_id
    await form_group(follower)
    assert follower.leads


async def test_a_stable_group_rebalances_when_a_member_never_asks_for_its_assignment(
    coordinator: GroupCoordinator, patient_pair: Pair
) -> None:
    leader, _ = patient_pair
    await leader.sync()
    await asyncio.sleep(REBALANCE - TICK)
    assert state_of(coordinator) == "Stable"
    await asyncio.sleep(2 * TICK)
    assert state_of(coordinator) == "PreparingRebalance"
    assert members_of(coordinator) == [leader.identity]


async def test_a_leader_that_expires_before_it_assigns_makes_the_others_rebalance(
    follower: Client, virtual_time: VirtualTimeLoop
) -> None:
    began = virtual_time.time()
    assert (await follower.sync()).error is ErrorCode.rebalance_in_progress
    assert virtual_time.time() == began + SESSION
    await form_group(follower)


async def test_a_second_sync_answers_the_pending_one_rebalance_in_progress(
    leader: Client, follower: Client
) -> None:
    earlier, later = await start(follower.sync()), await start(follower.sync())
    assert (await earlier).error is ErrorCode.rebalance_in_progress
    await leader.sync()
    assert (await later).error is ErrorCode.none


async def test_a_member_whose_client_disconnects_during_its_sync_expires_at_its_session_timeout(
    coordinator: GroupCoordinator, leader: Client, follower: Client
) -> None:
    syncing = await start(follower.sync())
    syncing.cancel()
    await settled()
    await asyncio.sleep(SESSION - 1)
    leader.heartbeat()
    await asyncio.sleep(1 - TICK)
    assert len(members_of(coordinator)) == 2
    await asyncio.sleep(2 * TICK)
    assert members_of(coordinator) == [leader.identity]
