"""Committed offsets: who may commit, when a commit is visible, and failures of the log."""

import asyncio

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.config import GroupConfig
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.offsets import NO_OFFSET, CommittedOffset, GroupOffsets
from examples.broker.group.requests import CommitRequest
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.group.conftest import Coordinate
from tests.examples.broker.group.group_client import GROUP, Client, MemoryLog, form_group, settled, start

ONE, TWO = TopicPartition("events", 0), TopicPartition("events", 1)


def committed(coordinator: GroupCoordinator, topic_partition: TopicPartition = ONE) -> int:
    return coordinator.fetch_offsets(GROUP, [topic_partition])[topic_partition].offset


async def refusal(client: Client) -> ErrorCode:
    try:
        return await client.commit(ONE, 9)
    except ApiError as error:
        return error.code


async def test_a_commit_is_visible_to_all_clients(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator)
    await form_group(client)
    request = CommitRequest(
        GROUP, {ONE: CommittedOffset(7, 3, "here"), TWO: CommittedOffset(8)}, 1, client.identity
    )
    assert await coordinator.commit_offsets(request) == {ONE: ErrorCode.none, TWO: ErrorCode.none}
    other = TopicPartition("other", 0)
    assert coordinator.fetch_offsets(GROUP, [ONE, other]) == {
        ONE: CommittedOffset(7, 3, "here"),
        other: NO_OFFSET,
    }
    assert coordinator.fetch_offsets(GROUP) == {ONE: CommittedOffset(7, 3, "here"), TWO: CommittedOffset(8)}


async def test_commits_outlive_the_members_that_made_them(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator)
    await form_group(client)
    await client.commit(ONE, 7)
    await asyncio.sleep(client.session + 1)
    assert coordinator.describe_group(GROUP).state == "Empty"
    assert committed(coordinator) == 7


async def test_a_commit_is_not_visible_before_the_log_has_it(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    client = Client(coordinator)
    await form_group(client)
    await client.commit(ONE, 7)
    log.appended.clear()
    committing = await start(client.commit(ONE, 8))
    assert committed(coordinator) == 7
    log.appended.set()
    assert await committing is ErrorCode.none
    assert committed(coordinator) == 8


async def test_a_commit_takes_effect_even_if_its_client_disconnects(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    client = Client(coordinator)
    await form_group(client)
    log.appended.clear()
    committing = await start(client.commit(ONE, 7))
    committing.cancel()
    log.appended.set()
    await settled()
    assert committed(coordinator) == 7


@pytest.mark.parametrize(
    ("refused", "answer"),
    [
        (ErrorCode.not_leader_or_follower, ErrorCode.not_coordinator),
        (ErrorCode.not_enough_replicas, ErrorCode.coordinator_not_available),
        (ErrorCode.not_enough_replicas_after_append, ErrorCode.coordinator_not_available),
        (ErrorCode.request_timed_out, ErrorCode.coordinator_not_available),
        (ErrorCode.unknown_topic_or_partition, ErrorCode.coordinator_not_available),
        (ErrorCode.message_too_large, ErrorCode.offset_metadata_too_large),
    ],
)
async def test_a_commit_that_the_log_refuses_has_no_effect(
    coordinator: GroupCoordinator, log: MemoryLog, refused: ErrorCode, answer: ErrorCode
) -> None:
    client = Client(coordinator)
    await form_group(client)
    log.error = refused
    assert await client.commit(ONE, 7) is answer
    assert coordinator.fetch_offsets(GROUP) == {}


async def test_metadata_that_is_too_large_is_refused_for_its_own_partition_only(
    coordinator: GroupCoordinator,
) -> None:
    request = CommitRequest(
        GROUP, {ONE: CommittedOffset(7, metadata="ü" * 4096), TWO: CommittedOffset(8, metadata="x" * 4097)}
    )
    assert await coordinator.commit_offsets(request) == {
        ONE: ErrorCode.none,
        TWO: ErrorCode.offset_metadata_too_large,
    }
    assert (committed(coordinator, ONE), committed(coordinator, TWO)) == (7, -1)


async def test_a_client_without_a_group_membership_may_commit_while_there_are_no_members(
    coordinator: GroupCoordinator,
) -> None:
    standalone = Client(coordinator)
    assert await standalone.commit(ONE, 7) is ErrorCode.none
    assert committed(coordinator) == 7
    assert coordinator.describe_group(GROUP).state == "Empty"
    member = Client(coordinator)
    await form_group(member)
    assert await refusal(standalone) is ErrorCode.unknown_member_id
    member.leave()
    assert await standalone.commit(ONE, 8) is ErrorCode.none


async def test_only_members_of_the_current_generation_may_commit(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator)
    await form_group(client)
    client.generation_id = 2
    assert await refusal(client) is ErrorCode.illegal_generation
    client.generation_id, client.member_id = 1, "stranger"
    assert await refusal(client) is ErrorCode.unknown_member_id
    client.instance = "nobody"
    assert await refusal(client) is ErrorCode.unknown_member_id
    assert committed(coordinator) == -1


async def test_a_generation_of_a_group_that_does_not_exist_cannot_commit(
    coordinator: GroupCoordinator,
) -> None:
    client = Client(coordinator)
    client.generation_id = 3
    assert await refusal(client) is ErrorCode.group_id_not_found
    assert coordinator.list_groups() == []


async def test_a_member_may_commit_during_a_rebalance(
    coordinator: GroupCoordinator,
) -> None:
    client, newcomer = Client(coordinator), Client(coordinator)
    await form_group(client)
    joining = await start(newcomer.join())
    assert await client.commit(ONE, 7) is ErrorCode.none
    await client.join()
    await joining
    assert await refusal(client) is ErrorCode.rebalance_in_progress, "the group syncs"


async def test_a_commit_without_effect_leaves_no_group(coordinator: GroupCoordinator, log: MemoryLog) -> None:
    standalone = Client(coordinator)
    assert await standalone.commit(ONE, 7, "x" * 5000) is ErrorCode.offset_metadata_too_large
    log.error = ErrorCode.not_enough_replicas
    assert await standalone.commit(ONE, 7) is ErrorCode.coordinator_not_available
    assert coordinator.list_groups() == []


async def test_a_group_with_a_pending_commit_is_kept(coordinator: GroupCoordinator, log: MemoryLog) -> None:
    log.appended.clear()
    committing = await start(Client(coordinator).commit(ONE, 7))
    assert (await Client(coordinator, protocols=()).join_once()).error is not ErrorCode.none
    log.appended.set()
    assert await committing is ErrorCode.none
    assert committed(coordinator) == 7


async def test_a_retry_of_one_of_two_failed_commits_takes_effect(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    async def insist() -> None:
        while await Client(coordinator).commit(ONE, 7) is not ErrorCode.none:
            log.error = ErrorCode.none

    log.error = ErrorCode.not_enough_replicas
    log.appended.clear()
    insisting = await start(insist())
    giving_up = await start(Client(coordinator).commit(TWO, 8))
    log.appended.set()
    await insisting
    assert await giving_up is ErrorCode.coordinator_not_available
    assert committed(coordinator) == 7


async def test_another_broker_answers_offset_requests_not_coordinator(coordinate: Coordinate) -> None:
    elsewhere = await coordinate(GroupConfig())
    assert await refusal(Client(elsewhere)) is ErrorCode.not_coordinator
    with pytest.raises(ApiError, match="NOT_COORDINATOR"):
        elsewhere.fetch_offsets(GROUP)


def test_a_commit_that_completes_after_a_later_one_is_not_visible() -> None:
    offsets = GroupOffsets()
    earlier = offsets.prepare({ONE: CommittedOffset(7), TWO: CommittedOffset(7)})
    later = offsets.prepare({ONE: CommittedOffset(8)})
    offsets.complete(later, appended=True)
    offsets.complete(earlier, appended=True)
    assert [offsets.get(entry).offset for entry in (ONE, TWO)] == [8, 7]
