"""A new coordinator: what it knows, and how the old one answers pending requests."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.config import GroupConfig
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.group_loader import SLICE
from examples.broker.group.group_log import Record, offset_record
from examples.broker.group.offsets import CommittedOffset
from examples.broker.group.requests import CommitRequest
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.conftest import Coordinate
from tests.examples.broker.group.group_client import (
    GROUP,
    SESSION,
    Client,
    MemoryLog,
    form_group,
    lead,
    settled,
    start,
    waiting,
)

EVENTS = TopicPartition("events", 0)


async def hand_over(old: GroupCoordinator, coordinate: Coordinate, *clients: Client) -> GroupCoordinator:
    partition = old.partition_for(GROUP)
    old.resigned(partition)
    new = await coordinate(GroupConfig())
    await lead(new, partition)
    for client in clients:
        client.coordinator = new
    return new


async def test_members_continue_with_the_new_coordinator_without_a_rebalance(
    coordinator: GroupCoordinator, coordinate: Coordinate
) -> None:
    clients = [Client(coordinator, instance=instance) for instance in (None, None, "static")]
    await form_group(*clients)
    await clients[0].commit(EVENTS, 7, "here")
    before = coordinator.describe_group(GROUP)
    new = await hand_over(coordinator, coordinate, *clients)
    assert waiting(coordinator) == {}
    assert new.describe_group(GROUP) == before
    for client in clients:
        client.heartbeat()
        assert (await client.sync()).assignment == client.member_id.encode()
    assert new.fetch_offsets(GROUP) == {EVENTS: CommittedOffset(7, metadata="here")}
    assert waiting(new) == {"heartbeat": 3}


async def test_a_member_that_failed_with_its_coordinator_expires_at_the_next_one(
    coordinator: GroupCoordinator, coordinate: Coordinate
) -> None:
    alive, dead = Client(coordinator), Client(coordinator)
    await form_group(alive, dead)
    await asyncio.sleep(SESSION - 1)
    new = await hand_over(coordinator, coordinate, alive, dead)
    await asyncio.sleep(SESSION - 1)
    alive.heartbeat()
    await asyncio.sleep(0.999)
    assert len(new.describe_group(GROUP).members) == 2
    await asyncio.sleep(0.002)
    assert [m.identity for m in new.describe_group(GROUP).members] == [alive.identity]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b"hello"),
        (b"\xff", b"[]"),
        (b"null", b"[]"),
        (b'["other", "events", 0]', b"hello"),
        (b'["other", "events", 0]', b"[1, 2, 3, 4]"),
        (b'["other", "events"]', b"[1]"),
        (b'["other"]', b"[]"),
        (b'["other"]', b'{"members": [{}], "protocol_type": ""}'),
        (b'["other"]', b'{"members": [], "protocol_type": ""}'),
    ],
)
async def test_an_unreadable_record_is_logged_and_the_other_groups_are_loaded(
    coordinator: GroupCoordinator,
    coordinate: Coordinate,
    log: MemoryLog,
    caplog: pytest.LogCaptureFixture,
    key: bytes,
    value: bytes,
) -> None:
    log.records[coordinator.partition_for(GROUP)].append((key, value))
    await Client(coordinator).commit(EVENTS, 7)
    new = await hand_over(coordinator, coordinate)
    assert [group.group_id for group in new.list_groups()] == [GROUP]
    assert new.fetch_offsets(GROUP) == {EVENTS: CommittedOffset(7)}
    assert f"skipped the unreadable record of {key!r}" in caplog.text


async def test_generation_ids_continue_with_the_new_coordinator(
    coordinator: GroupCoordinator, coordinate: Coordinate
) -> None:
    client = Client(coordinator)
    await form_group(client)
    await hand_over(coordinator, coordinate, client)
    await form_group(client)
    assert client.generation_id == 2


async def test_an_empty_group_stays_empty(coordinator: GroupCoordinator, coordinate: Coordinate) -> None:
    client = Client(coordinator)
    await form_group(client)
    client.leave()
    await settled()
    new = await hand_over(coordinator, coordinate)
    assert (new.describe_group(GROUP).state, waiting(new)) == ("Empty", {})
    client = Client(new)
    await form_group(client)
    assert client.generation_id == 3


async def test_pending_requests_are_answered_not_coordinator(
    coordinator: GroupCoordinator,
) -> None:
    leader, follower = Client(coordinator), Client(coordinator)
    joins = [await start(client.join()) for client in (leader, follower)]
    await asyncio.gather(*joins)
    syncing = await start(follower.sync())
    other = Client(coordinator)
    elsewhere = [await start(other.join_once(group_id="other", requires_known_member_id=False))]
    newcomer = await Client(coordinator).join_once(group_id="other")
    assert newcomer.error is ErrorCode.member_id_required
    for group_id in (GROUP, "other"):
        coordinator.resigned(coordinator.partition_for(group_id))
    assert waiting(coordinator) == {}
    assert (await syncing).error is ErrorCode.not_coordinator
    assert (await elsewhere[0]).error is ErrorCode.not_coordinator
    assert (await leader.sync()).error is ErrorCode.not_coordinator
    with pytest.raises(ApiError, match="NOT_COORDINATOR"):
        leader.heartbeat()
    with pytest.raises(ApiError, match="NOT_COORDINATOR"):
        await coordinator.delete_group(GROUP)
    await asyncio.sleep(SESSION)
    assert waiting(coordinator) == {}


async def test_pending_joins_are_answered_not_coordinator_at_once(coordinator: GroupCoordinator) -> None:
    first, second = Client(coordinator), Client(coordinator)
    await form_group(first)
    joining = await start(second.join())
    coordinator.resigned(coordinator.partition_for(GROUP))
    assert (await joining).error is ErrorCode.not_coordinator
    assert waiting(coordinator) == {}


async def test_an_append_that_completes_after_the_handover_changes_nothing(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    client = Client(coordinator)
    await client.join()
    log.appended.clear()
    syncing = await start(client.sync())
    coordinator.resigned(coordinator.partition_for(GROUP))
    assert (await syncing).error is ErrorCode.not_coordinator
    log.appended.set()
    await settled()
    assert waiting(coordinator) == {}


async def test_a_broker_may_coordinate_a_group_again(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator)
    await form_group(client)
    partition = coordinator.partition_for(GROUP)
    with pytest.raises(ValueError, match="already"):
        coordinator.elected(partition)
    coordinator.resigned(partition)
    coordinator.resigned(partition)
    await lead(coordinator, partition)
    client.heartbeat()
    assert waiting(coordinator) == {"heartbeat": 1}


async def test_a_stopping_coordinator_answers_all_pending_requests(
    log: MemoryLog, virtual_time: VirtualTimeLoop
) -> None:
    async with GroupCoordinator.running(0, log) as coordinator:
        await lead(coordinator, *(coordinator.partition_for(group_id) for group_id in (GROUP, "other")))
        joining = await start(Client(coordinator).join())
        log.appended.clear()
        committing = await start(
            coordinator.commit_offsets(CommitRequest("other", {EVENTS: CommittedOffset(7)}))
        )
    assert (await joining).error is ErrorCode.not_coordinator
    assert await committing == {EVENTS: ErrorCode.coordinator_not_available}
    assert waiting(coordinator) == {}
    assert virtual_time.time() == 0


async def commit_in_the_log(coordinator: GroupCoordinator, log: MemoryLog, count: int) -> None:
    """Let the log have many commits of the group, the last one of offset ``count``."""
    partition = coordinator.partition_for(GROUP)
    coordinator.resigned(partition)
    log.records[partition] += [offset_record(GROUP, EVENTS, CommittedOffset(at + 1)) for at in range(count)]


async def test_requests_during_a_load_are_answered_load_in_progress(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    client = Client(coordinator)
    await form_group(client)
    await commit_in_the_log(coordinator, log, 10 * SLICE)
    coordinator.elected(coordinator.partition_for(GROUP))
    await settled()
    loading = ErrorCode.coordinator_load_in_progress
    assert (await client.join_once()).error is loading
    assert (await client.sync()).error is loading
    calls: list[Callable[[], object]] = [
        client.heartbeat,
        client.leave,
        lambda: coordinator.fetch_offsets(GROUP),
        lambda: coordinator.describe_group(GROUP),
        coordinator.list_groups,
    ]
    for call in calls:
        with pytest.raises(ApiError) as refused:
            call()
        assert refused.value.code is loading
    for request in (client.commit(EVENTS, 9), coordinator.delete_group(GROUP)):
        with pytest.raises(ApiError) as refused:
            await request
        assert refused.value.code is loading
    await settled()
    client.heartbeat()
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
    await commit_in_the_log(coordinator, log, 5 * SLICE)
    coordinator.elected(coordinator.partition_for(GROUP))
    while read < 5 * SLICE:
        before = read
        await asyncio.sleep(0)
        assert read - before <= SLICE


async def test_a_coordinator_that_resigns_during_a_load_stops_it_and_may_load_again(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    await commit_in_the_log(coordinator, log, 10 * SLICE)
    partition = coordinator.partition_for(GROUP)
    coordinator.elected(partition)
    await settled()
    with pytest.raises(ValueError, match="already"):
        coordinator.elected(partition)
    coordinator.resigned(partition)
    await settled()
    assert (await Client(coordinator).join_once()).error is ErrorCode.not_coordinator
    coordinator.elected(partition)
    await settled()
    coordinator.resigned(partition)
    coordinator.elected(partition)
    await settled()
    await settled()
    assert coordinator.fetch_offsets(GROUP) == {EVENTS: CommittedOffset(10 * SLICE)}
