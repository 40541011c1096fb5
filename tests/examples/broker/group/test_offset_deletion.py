"""Deletion of committed offsets: which may be deleted, and what the log has."""

import struct

import pytest

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.offsets import CommittedOffset, GroupOffsets
from examples.broker.group.requests import Protocols
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.group.group_client import (
    GROUP,
    Client,
    MemoryLog,
    form_group,
    settled,
    start,
    stored,
)

ONE, TWO, OTHER = TopicPartition("events", 0), TopicPartition("events", 1), TopicPartition("others", 0)


def subscribed_to(*topics: str) -> Protocols:
    """The metadata that a consumer sends: a version, the topics, and no user data."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return (("range", struct.pack(">hi", 1, len(topics)) + names + struct.pack(">i", -1)),)


async def refusal(coordinator: GroupCoordinator, group_id: str = GROUP) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        await coordinator.delete_offsets(group_id, [ONE])
    return refused.value.code


async def test_offsets_of_an_empty_group_are_deleted_and_stay_so(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    for entry in (ONE, TWO):
        await Client(coordinator).commit(entry, 7)
    assert await coordinator.delete_offsets(GROUP, [ONE, OTHER]) == dict.fromkeys(
        [ONE, OTHER], ErrorCode.none
    )
    assert coordinator.fetch_offsets(GROUP) == {TWO: CommittedOffset(7)}
    assert coordinator.fetch_offsets(GROUP, [ONE])[ONE].offset == -1
    assert list(stored(log, coordinator.partition_for(GROUP))[GROUP].offsets) == [TWO]
    await Client(coordinator).commit(ONE, 8)
    assert coordinator.fetch_offsets(GROUP)[ONE] == CommittedOffset(8)


async def test_a_group_without_any_offset_left_is_gone(coordinator: GroupCoordinator) -> None:
    await Client(coordinator).commit(ONE, 7)
    await coordinator.delete_offsets(GROUP, [ONE])
    assert await refusal(coordinator) is ErrorCode.group_id_not_found
    assert await refusal(coordinator, "") is ErrorCode.invalid_group_id
    assert coordinator.list_groups() == []


async def test_offsets_of_a_topic_that_a_member_subscribes_to_are_kept(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator, protocols=subscribed_to("events", "more"))
    await form_group(client)
    for entry in (ONE, OTHER):
        await client.commit(entry, 7)
    assert await coordinator.delete_offsets(GROUP, [ONE, OTHER]) == {
        ONE: ErrorCode.group_subscribed_to_topic,
        OTHER: ErrorCode.none,
    }
    assert set(coordinator.fetch_offsets(GROUP)) == {ONE}


async def test_while_a_group_rebalances_it_may_subscribe_to_any_topic(coordinator: GroupCoordinator) -> None:
    client = Client(coordinator, protocols=subscribed_to("events"))
    await form_group(client)
    joining = await start(Client(coordinator, protocols=subscribed_to("events")).join())
    assert await coordinator.delete_offsets(GROUP, [OTHER]) == {OTHER: ErrorCode.group_subscribed_to_topic}
    joining.cancel()


@pytest.mark.parametrize("metadata", [b"", b"\0\1\0\0\0\1", b"\0\1\0\0\0\1\0\2\xff\xff"])
async def test_an_unreadable_subscription_may_be_one_to_any_topic(
    coordinator: GroupCoordinator, metadata: bytes
) -> None:
    client = Client(coordinator, protocols=(("range", metadata),))
    await form_group(client)
    assert await coordinator.delete_offsets(GROUP, [ONE]) == {ONE: ErrorCode.group_subscribed_to_topic}


async def test_members_that_are_no_consumers_keep_all_offsets(coordinator: GroupCoordinator) -> None:
    worker = Client(coordinator)
    joined = await worker.join_once(protocol_type="connect")
    worker.member_id = joined.member_id
    await start(worker.join_once(protocol_type="connect"))
    assert await refusal(coordinator) is ErrorCode.non_empty_group


async def test_a_deletion_that_the_log_refuses_has_no_effect(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    await Client(coordinator).commit(ONE, 7)
    log.error = ErrorCode.not_enough_replicas
    assert await refusal(coordinator) is ErrorCode.coordinator_not_available
    assert set(coordinator.fetch_offsets(GROUP)) == {ONE}


async def test_a_deletion_takes_effect_even_if_its_client_disconnects(
    coordinator: GroupCoordinator, log: MemoryLog
) -> None:
    await Client(coordinator).commit(ONE, 7)
    log.appended.clear()
    deleting = await start(coordinator.delete_offsets(GROUP, [ONE]))
    deleting.cancel()
    log.appended.set()
    await settled()
    assert coordinator.fetch_offsets(GROUP) == {}


def test_a_commit_that_completes_after_a_later_deletion_is_not_visible() -> None:
    offsets = GroupOffsets()
    earlier = offsets.prepare({ONE: CommittedOffset(7)})
    deletion = offsets.prepare({ONE: CommittedOffset(-1)})
    offsets.complete(deletion, appended=True)
    offsets.complete(earlier, appended=True)
    assert list(offsets) == []
    assert not offsets
