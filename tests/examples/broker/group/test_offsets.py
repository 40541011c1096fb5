"""Committed offsets: who may commit and delete, when that is visible, and failures of the log."""

import asyncio
import struct

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.offsets import NO_OFFSET, CommittedOffset, GroupOffsets
from examples.broker.group.requests import CommitRequest, Protocols
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.group.group_client import (
    COORDINATOR_ERRORS,
    EVENTS,
    GROUP,
    Client,
    MemoryLog,
    form_group,
    send,
    settled,
    start,
    state_of,
    stored,
)

MORE, OTHER = TopicPartition("events", 1), TopicPartition("other", 0)


def committed(coordinator: GroupCoordinator, topic_partition: TopicPartition = EVENTS) -> int:
    return coordinator.fetch_offsets(GROUP, [topic_partition])[topic_partition].offset


async def test_a_commit_is_visible_to_all_clients(member: Client) -> None:
    here, there = CommittedOffset(7, 3, "here"), CommittedOffset(8)
    request = CommitRequest(GROUP, {EVENTS: here, MORE: there}, 1, member.identity)
    assert await member.coordinator.commit_offsets(request) == dict.fromkeys([EVENTS, MORE], ErrorCode.none)
    assert member.coordinator.fetch_offsets(GROUP, [EVENTS, OTHER]) == {EVENTS: here, OTHER: NO_OFFSET}
    assert member.coordinator.fetch_offsets(GROUP) == {EVENTS: here, MORE: there}


async def test_commits_outlive_the_members_that_made_them(member: Client) -> None:
    await member.commit(EVENTS, 7)
    await asyncio.sleep(member.session + 1)
    assert (state_of(member.coordinator), committed(member.coordinator)) == ("Empty", 7)


async def test_a_commit_is_not_visible_before_the_log_has_it(member: Client, log: MemoryLog) -> None:
    await member.commit(EVENTS, 7)
    log.appended.clear()
    committing = await start(member.commit(EVENTS, 8))
    assert committed(member.coordinator) == 7
    log.appended.set()
    assert await committing is ErrorCode.none
    assert committed(member.coordinator) == 8


@pytest.mark.parametrize(("request_name", "offset"), [("commit", 9), ("delete offsets", -1)])
async def test_a_request_takes_effect_even_if_its_client_disconnects(
    coordinator: GroupCoordinator, log: MemoryLog, request_name: str, offset: int
) -> None:
    client = Client(coordinator)
    await client.commit(EVENTS, 7)
    log.appended.clear()
    requesting = await start(send(client, request_name))
    requesting.cancel()
    log.appended.set()
    await settled()
    assert committed(coordinator) == offset


@pytest.mark.parametrize(
    ("refused", "answer"),
    [*COORDINATOR_ERRORS, (ErrorCode.message_too_large, ErrorCode.offset_metadata_too_large)],
)
async def test_a_commit_that_the_log_refuses_has_no_effect(
    member: Client, log: MemoryLog, refused: ErrorCode, answer: ErrorCode
) -> None:
    log.error = refused
    assert await member.commit(EVENTS, 7) is answer
    assert member.coordinator.fetch_offsets(GROUP) == {}


async def test_metadata_that_is_too_large_is_refused_for_its_own_partition_only(
    coordinator: GroupCoordinator,
) -> None:
    fits, too_large = CommittedOffset(7, metadata="ü" * 4096), CommittedOffset(8, metadata="x" * 4097)
    assert await coordinator.commit_offsets(CommitRequest(GROUP, {EVENTS: fits, MORE: too_large})) == {
        EVENTS: ErrorCode.none,
        MORE: ErrorCode.offset_metadata_too_large,
    }
    assert (committed(coordinator, EVENTS), committed(coordinator, MORE)) == (7, -1)


async def test_a_client_without_a_group_membership_may_commit_while_there_are_no_members(
    coordinator: GroupCoordinator,
) -> None:
    standalone, member = Client(coordinator), Client(coordinator)
    assert await standalone.commit(EVENTS, 7) is ErrorCode.none
    assert (state_of(coordinator), committed(coordinator)) == ("Empty", 7)
    await form_group(member)
    assert await send(standalone, "commit") is ErrorCode.unknown_member_id
    member.leave()
    assert await standalone.commit(EVENTS, 8) is ErrorCode.none


async def test_a_commit_without_effect_leaves_no_group(coordinator: GroupCoordinator, log: MemoryLog) -> None:
    standalone = Client(coordinator)
    assert await standalone.commit(EVENTS, 7, "x" * 5000) is ErrorCode.offset_metadata_too_large
    log.error = ErrorCode.not_enough_replicas
    assert await standalone.commit(EVENTS, 7) is ErrorCode.coordinator_not_available
    assert coordinator.list_groups() == []


async def test_a_group_with_a_pending_commit_is_kept(coordinator: GroupCoordinator, log: MemoryLog) -> None:
    log.appended.clear()
    committing = await start(Client(coordinator).commit(EVENTS, 7))
    assert await send(Client(coordinator), "join", protocols=()) is not ErrorCode.none
    log.appended.set()
    assert await committing is ErrorCode.none
    assert committed(coordinator) == 7


def test_what_completes_after_a_later_commit_or_deletion_is_not_visible() -> None:
    offsets = GroupOffsets()
    earlier = offsets.prepare(dict.fromkeys([EVENTS, MORE, OTHER], CommittedOffset(7)))
    later = offsets.prepare({EVENTS: CommittedOffset(8), OTHER: NO_OFFSET})
    offsets.complete(later, appended=True)
    offsets.complete(earlier, appended=True)
    assert {entry: offsets.get(entry).offset for entry in offsets} == {EVENTS: 8, MORE: 7}


# Deletion


def subscribed_to(*topics: str) -> Protocols:
    """The metadata that a consumer sends: a version, the topics, and no user data."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return (("range", struct.pack(">hi", 1, len(topics)) + names + struct.pack(">i", -1)),)


async def test_offsets_of_an_empty_group_are_deleted_and_stay_so(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    for entry in (EVENTS, MORE):
        await Client(coordinator).commit(entry, 7)
    answers = await coordinator.delete_offsets(GROUP, [EVENTS, OTHER])
    assert answers == dict.fromkeys([EVENTS, OTHER], ErrorCode.none)
    assert coordinator.fetch_offsets(GROUP) == {MORE: CommittedOffset(7)}
    assert committed(coordinator) == -1
    assert list(stored(log, coordinator.partition_for(GROUP))[GROUP].offsets) == [MORE]
    await Client(coordinator).commit(EVENTS, 8)
    assert committed(coordinator) == 8


async def test_a_group_without_any_offset_left_is_gone(coordinator: GroupCoordinator) -> None:
    await Client(coordinator).commit(EVENTS, 7)
    await coordinator.delete_offsets(GROUP, [EVENTS])
    assert coordinator.list_groups() == []


async def test_offsets_of_a_topic_that_a_member_subscribes_to_are_kept(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator, protocols=subscribed_to("events", "more"))
    await form_group(client)
    for entry in (EVENTS, OTHER):
        await client.commit(entry, 7)
    assert await coordinator.delete_offsets(GROUP, [EVENTS, OTHER]) == {
        EVENTS: ErrorCode.group_subscribed_to_topic,
        OTHER: ErrorCode.none,
    }
    assert set(coordinator.fetch_offsets(GROUP)) == {EVENTS}


async def test_while_a_group_rebalances_it_may_subscribe_to_any_topic(coordinator: GroupCoordinator) -> None:
    elsewhere = subscribed_to("other")
    await form_group(Client(coordinator, protocols=elsewhere))
    joining = await start(Client(coordinator, protocols=elsewhere).join())
    assert await send(Client(coordinator), "delete offsets") is ErrorCode.group_subscribed_to_topic
    joining.cancel()


@pytest.mark.parametrize("metadata", [b"", b"\0\1\0\0\0\1", b"\0\1\0\0\0\1\0\2\xff\xff"])
async def test_an_unreadable_subscription_may_be_one_to_any_topic(
    coordinator: GroupCoordinator, metadata: bytes
) -> None:
    client = Client(coordinator, protocols=(("range", metadata),))
    await form_group(client)
    assert await send(client, "delete offsets") is ErrorCode.group_subscribed_to_topic


async def test_members_that_are_no_consumers_keep_all_offsets(coordinator: GroupCoordinator) -> None:
    worker = Client(coordinator)
    await start(worker.join_once(protocol_type="connect", requires_known_member_id=False))
    assert await send(worker, "delete offsets") is ErrorCode.non_empty_group


async def test_a_deletion_of_offsets_that_the_log_refuses_has_no_effect(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    await Client(coordinator).commit(EVENTS, 7)
    log.error = ErrorCode.not_enough_replicas
    assert await send(Client(coordinator), "delete offsets") is ErrorCode.coordinator_not_available
    assert committed(coordinator) == 7
