"""A new coordinator: what it knows, and how the old one answers pending requests."""

import asyncio
from collections.abc import Iterator

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupConfig, GroupCoordinator
from examples.broker.group.group_log import SLICE, Record, group_record, offset_record
from examples.broker.group.offsets import CommittedOffset
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.conftest import Coordinate, Pair
from tests.examples.broker.group.group_client import (
    EVENTS,
    GROUP,
    SESSION,
    TICK,
    Client,
    MemoryLog,
    form_group,
    lead,
    members_of,
    send,
    settled,
    settles,
    start,
    state_of,
    waiting,
)


async def hand_over(old: GroupCoordinator, coordinate: Coordinate, *clients: Client) -> GroupCoordinator:
    partition = old.partition_for(GROUP)
    old.resigned(partition)
    new = await coordinate(GroupConfig())
    await lead(new, partition)
    for client in clients:
        client.coordinator = new
    return new


def record_of(coordinator: GroupCoordinator) -> Record:
    group = coordinator.describe_group(GROUP)
    return group_record(group, {member.member_id: member.assignment for member in group.members.values()})


async def test_members_continue_with_the_new_coordinator_without_a_rebalance(
    coordinator: GroupCoordinator, coordinate: Coordinate
) -> None:
    clients = [Client(coordinator, instance=instance) for instance in (None, None, "static")]
    await form_group(*clients)
    await clients[0].commit(EVENTS, 7, "here")
    before = record_of(coordinator)
    new = await hand_over(coordinator, coordinate, *clients)
    assert waiting(coordinator) == {}
    assert (record_of(new), state_of(new)) == (before, "Stable")
    for client in clients:
        client.heartbeat()
        assert (await client.sync()).assignment == client.member_id.encode()
    assert new.fetch_offsets(GROUP) == {EVENTS: CommittedOffset(7, metadata="here")}
    assert waiting(new) == {"heartbeat": 3}
    await form_group(*clients)
    assert clients[0].generation_id == 2


async def test_a_member_that_failed_with_its_coordinator_expires_at_the_next_one(
    coordinator: GroupCoordinator, coordinate: Coordinate
) -> None:
    alive, dead = Client(coordinator), Client(coordinator)
    await form_group(alive, dead)
    await asyncio.sleep(SESSION - 1)
    new = await hand_over(coordinator, coordinate, alive, dead)
    await asyncio.sleep(SESSION - 1)
    alive.heartbeat()
    await asyncio.sleep(1 - TICK)
    assert len(members_of(new)) == 2
    await asyncio.sleep(2 * TICK)
    assert members_of(new) == [alive.identity]


async def test_an_empty_group_stays_empty(member: Client, coordinate: Coordinate) -> None:
    member.leave()
    await settled()
    new = await hand_over(member.coordinator, coordinate)
    assert (state_of(new), waiting(new)) == ("Empty", {})
    newcomer = Client(new)
    await form_group(newcomer)
    assert newcomer.generation_id == 3


async def test_pending_requests_are_answered_not_coordinator_at_once(
    coordinator: GroupCoordinator, pair: Pair, log: MemoryLog
) -> None:
    leader, follower = pair
    log.appended.clear()
    pending = [await start(client.sync()) for client in (leader, follower)]
    for group_id in ("first", "first", "second"):
        joining = Client(coordinator).join_once(group_id=group_id, requires_known_member_id=False)
        pending.append(await start(joining))  # type: ignore[arg-type]  # both answers have an error
    assert await send(Client(coordinator), "join", group_id="second") is ErrorCode.member_id_required
    for group_id in (GROUP, "first", "second"):
        for _ in range(2):
            coordinator.resigned(coordinator.partition_for(group_id))
    assert waiting(coordinator) == {}
    answers = await settles(asyncio.gather(*pending))
    assert {answer.error for answer in answers} == {ErrorCode.not_coordinator}
    assert await send(leader, "heartbeat") is ErrorCode.not_coordinator
    log.appended.set()
    await asyncio.sleep(SESSION)
    assert waiting(coordinator) == {}, "what is stored afterwards changes nothing"


async def test_the_join_of_a_new_member_to_a_stable_group_is_answered_not_coordinator(member: Client) -> None:
    joining = await start(Client(member.coordinator).join())
    member.coordinator.resigned(member.coordinator.partition_for(GROUP))
    assert (await joining).error is ErrorCode.not_coordinator
    assert waiting(member.coordinator) == {}


async def test_a_stopping_coordinator_answers_all_pending_requests(
    log: MemoryLog, virtual_time: VirtualTimeLoop
) -> None:
    async with GroupCoordinator.running(0, log) as coordinator:
        await lead(coordinator, *(coordinator.partition_for(group_id) for group_id in (GROUP, "other")))
        joining = await start(Client(coordinator).join())
        log.appended.clear()
        committing = await start(send(Client(coordinator), "commit", group_id="other"))
    assert (await joining).error is ErrorCode.not_coordinator
    assert await committing is ErrorCode.coordinator_not_available
    assert waiting(coordinator) == {}
    assert virtual_time.time() == 0


async def commit_in_the_log(coordinator: GroupCoordinator, log: MemoryLog, count: int) -> int:
    """Let the log have many commits of the group, the last one of offset ``count``. Return the partition."""
    partition = coordinator.partition_for(GROUP)
    coordinator.resigned(partition)
    log.records[partition] += [offset_record(GROUP, EVENTS, CommittedOffset(at + 1)) for at in range(count)]
    return partition


async def test_requests_during_a_load_are_answered_load_in_progress(member: Client, log: MemoryLog) -> None:
    coordinator = member.coordinator
    coordinator.elected(await commit_in_the_log(coordinator, log, 10 * SLICE))
    await settled()
    requests = ("join", "sync", "heartbeat", "leave", "commit", "fetch offsets", "describe", "list", "delete")
    answers = {request: await send(member, request) for request in requests}
    assert answers == dict.fromkeys(requests, ErrorCode.coordinator_load_in_progress)
    await settled()
    member.heartbeat()
    assert coordinator.fetch_offsets(GROUP) == {EVENTS: CommittedOffset(10 * SLICE)}


async def test_other_tasks_run_after_each_slice_of_a_load(
    coordinator: GroupCoordinator, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0

    def counted(partition: int) -> Iterator[Record]:
        nonlocal read
        for record in log.records[partition]:
            read += 1
            yield record

    monkeypatch.setattr(log, "read", counted)
    coordinator.elected(await commit_in_the_log(coordinator, log, 5 * SLICE))
    while read < 5 * SLICE:
        before = read
        await asyncio.sleep(0)
        assert read - before <= SLICE


async def test_a_coordinator_that_resigns_during_a_load_stops_it_and_may_load_again(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    partition = await commit_in_the_log(coordinator, log, 10 * SLICE)
    coordinator.elected(partition)
    await settled()
    with pytest.raises(ValueError, match="already"):
        coordinator.elected(partition)
    coordinator.resigned(partition)
    await settled()
    assert await send(Client(coordinator), "join") is ErrorCode.not_coordinator
    coordinator.elected(partition)
    await settled()
    coordinator.resigned(partition)
    coordinator.elected(partition)
    for _ in range(2):
        await settled()
    assert coordinator.fetch_offsets(GROUP) == {EVENTS: CommittedOffset(10 * SLICE)}
