"""Assignments: from the leader through the log to all members, and missing assignments."""

import asyncio

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.requests import MemberIdentity
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.group_client import (
    GROUP,
    REBALANCE,
    SESSION,
    Client,
    MemoryLog,
    form_group,
    settled,
    start,
    stored,
    waiting,
)


async def joined_pair(coordinator: GroupCoordinator, *, session: float = SESSION) -> tuple[Client, Client]:
    """Return a leader and a follower that have joined and not synced."""
    clients = [Client(coordinator, session=session) for _ in range(2)]
    await asyncio.gather(*(client.join() for client in clients))
    leader, follower = sorted(clients, key=lambda client: not client.leads)
    return leader, follower


async def test_a_follower_gets_its_assignment_when_the_leader_has_brought_it(
    coordinator: GroupCoordinator,
) -> None:
    leader, follower = await joined_pair(coordinator)
    syncing = await start(follower.sync())
    assert not syncing.done()
    assert waiting(coordinator) == {"sync": 1, "heartbeat": 1}
    assignments = {leader.member_id: b"0", follower.member_id: b"1"}
    assert (await leader.sync(assignments)).assignment == b"0"
    assert (await syncing).assignment == b"1"
    assert ((await syncing).protocol_type, (await syncing).protocol_name) == ("consumer", "range")
    assert waiting(coordinator) == {"heartbeat": 2}


async def test_a_follower_that_syncs_after_the_leader_is_answered_at_once(
    coordinator: GroupCoordinator,
) -> None:
    leader, follower = await joined_pair(coordinator)
    await leader.sync({follower.member_id: b"1"})
    assert waiting(coordinator) == {"sync": 1, "heartbeat": 2}
    assert (await follower.sync()).assignment == b"1"
    assert waiting(coordinator) == {"heartbeat": 2}


async def test_a_member_without_an_assignment_gets_an_empty_one(coordinator: GroupCoordinator) -> None:
    leader, follower = await joined_pair(coordinator)
    await leader.sync({"stranger": b"?"})
    synced = await follower.sync()
    assert (synced.error, synced.assignment) == (ErrorCode.none, b"")


async def test_assignments_are_not_answered_before_the_log_has_them(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    leader, follower = await joined_pair(coordinator)
    log.appended.clear()
    syncs = [await start(follower.sync()), await start(leader.sync())]
    assert coordinator.describe_group(GROUP).state == "CompletingRebalance"
    assert not any(sync.done() for sync in syncs)
    log.appended.set()
    assert {result.error for result in await asyncio.gather(*syncs)} == {ErrorCode.none}
    group = stored(log, coordinator.partition_for(GROUP))[GROUP]
    assert {entry.member_id: entry.assignment for entry in group.members.values()} == {
        client.member_id: client.member_id.encode() for client in (leader, follower)
    }


@pytest.mark.parametrize(
    ("refusal", "answer"),
    [
        (ErrorCode.not_leader_or_follower, ErrorCode.not_coordinator),
        (ErrorCode.not_enough_replicas, ErrorCode.coordinator_not_available),
        (ErrorCode.not_enough_replicas_after_append, ErrorCode.coordinator_not_available),
        (ErrorCode.request_timed_out, ErrorCode.coordinator_not_available),
        (ErrorCode.unknown_topic_or_partition, ErrorCode.coordinator_not_available),
    ],
)
async def test_an_assignment_that_the_log_refuses_is_an_error_and_the_group_rebalances(
    coordinator: GroupCoordinator, log: MemoryLog, refusal: ErrorCode, answer: ErrorCode
) -> None:
    leader, follower = await joined_pair(coordinator)
    syncing = await start(follower.sync())
    log.error = refusal
    assert (await leader.sync()).error is answer
    assert (await syncing).error is answer
    assert coordinator.describe_group(GROUP).state == "PreparingRebalance"
    log.error = ErrorCode.none
    await form_group(leader, follower)
    assert leader.generation_id == 2


async def test_an_assignment_stored_after_its_generation_is_not_answered(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    leader, follower = await joined_pair(coordinator)
    log.appended.clear()
    syncing = await start(leader.sync())
    newcomer = await start(Client(coordinator).join())
    assert (await syncing).error is ErrorCode.rebalance_in_progress
    log.appended.set()
    await settled()
    assert coordinator.describe_group(GROUP).state == "PreparingRebalance"
    await asyncio.gather(leader.join(), follower.join(), newcomer)
    log.appended.clear()
    syncing = await start(leader.sync())
    assert not syncing.done(), "the new generation has an assignment of its own"
    log.appended.set()
    await syncing


async def test_an_assignment_stored_during_the_next_sync_is_not_that_generations(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    leader, follower = await joined_pair(coordinator)
    log.appended.clear()
    late = await start(leader.sync())
    newcomer = await start(Client(coordinator).join())
    assert (await late).error is ErrorCode.rebalance_in_progress
    await asyncio.gather(leader.join(), follower.join(), newcomer)
    log.appended.set()
    await settled()
    assert coordinator.describe_group(GROUP).state == "CompletingRebalance"
    assert (await leader.sync()).assignment == leader.member_id.encode()


async def test_an_assignment_is_stored_even_if_the_leaders_client_disconnects(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    leader, follower = await joined_pair(coordinator)
    log.appended.clear()
    syncing = await start(leader.sync({follower.member_id: b"1"}))
    syncing.cancel()
    log.appended.set()
    await settled()
    assert coordinator.describe_group(GROUP).state == "Stable"
    assert (await follower.sync()).assignment == b"1"


async def test_members_that_do_not_sync_within_the_rebalance_timeout_are_removed(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    leader, follower = await joined_pair(coordinator, session=2 * REBALANCE)
    began = virtual_time.time()
    synced = await follower.sync()
    assert virtual_time.time() == began + REBALANCE
    assert synced.error is ErrorCode.rebalance_in_progress
    assert (await leader.join_once()).error is ErrorCode.unknown_member_id
    await form_group(follower)
    assert follower.leads


async def test_a_stable_group_rebalances_when_a_member_never_asks_for_its_assignment(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    leader, _ = await joined_pair(coordinator, session=2 * REBALANCE)
    began = virtual_time.time()
    await leader.sync()
    await asyncio.sleep(REBALANCE - 0.001)
    assert coordinator.describe_group(GROUP).state == "Stable"
    await asyncio.sleep(0.002)
    assert coordinator.describe_group(GROUP).state == "PreparingRebalance"
    assert [m.identity for m in coordinator.describe_group(GROUP).members] == [leader.identity]
    assert virtual_time.time() == pytest.approx(began + REBALANCE, abs=0.01)


async def test_a_leader_that_expires_before_it_assigns_makes_the_others_rebalance(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    _, follower = await joined_pair(coordinator)
    began = virtual_time.time()
    assert (await follower.sync()).error is ErrorCode.rebalance_in_progress
    assert virtual_time.time() == began + SESSION
    await form_group(follower)


async def test_a_second_sync_answers_the_pending_one_rebalance_in_progress(
    coordinator: GroupCoordinator,
) -> None:
    leader, follower = await joined_pair(coordinator)
    earlier, later = await start(follower.sync()), await start(follower.sync())
    assert (await earlier).error is ErrorCode.rebalance_in_progress
    await leader.sync()
    assert (await later).error is ErrorCode.none


async def test_a_member_whose_client_disconnects_during_its_sync_expires_at_its_session_timeout(
    coordinator: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    leader, follower = await joined_pair(coordinator)
    syncing = await start(follower.sync())
    syncing.cancel()
    await settled()
    began = virtual_time.time()
    assert waiting(coordinator)["heartbeat"] == 2
    await asyncio.sleep(SESSION - 1)
    leader.heartbeat()
    await asyncio.sleep(0.999)
    assert len(coordinator.describe_group(GROUP).members) == 2
    await asyncio.sleep(0.002)
    assert [m.identity for m in coordinator.describe_group(GROUP).members] == [leader.identity]
    assert virtual_time.time() == pytest.approx(began + SESSION, abs=0.01)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"group_id": "another"}, ErrorCode.unknown_member_id),
        ({"member": MemberIdentity("stranger")}, ErrorCode.unknown_member_id),
        ({"generation_id": 0}, ErrorCode.illegal_generation),
        ({"protocol_type": "connect"}, ErrorCode.inconsistent_group_protocol),
        ({"protocol_name": "sticky"}, ErrorCode.inconsistent_group_protocol),
    ],
)
async def test_a_sync_that_does_not_fit_the_group_is_refused(
    coordinator: GroupCoordinator, changes: dict[str, object], error: ErrorCode
) -> None:
    client = Client(coordinator)
    await client.join()
    assert (await client.sync_once(**changes)).error is error
    assert (await client.sync_once(protocol_type="consumer", protocol_name="range")).error is ErrorCode.none


async def test_a_sync_during_a_rebalance_is_answered_rebalance_in_progress(
    coordinator: GroupCoordinator,
) -> None:
    client = Client(coordinator)
    await form_group(client)
    joining = await start(Client(coordinator).join())
    assert (await client.sync()).error is ErrorCode.rebalance_in_progress
    await asyncio.gather(client.join(), joining)
