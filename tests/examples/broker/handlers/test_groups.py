"""The group APIs except FindCoordinator: requests and responses."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from kio.schema.delete_groups.v2 import DeleteGroupsRequest
from kio.schema.describe_groups.v5 import DescribeGroupsRequest
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4 import HeartbeatRequest
from kio.schema.join_group.v9 import JoinGroupRequest, JoinGroupResponse
from kio.schema.join_group.v9.request import JoinGroupRequestProtocol
from kio.schema.leave_group.v5 import LeaveGroupRequest
from kio.schema.leave_group.v5.request import MemberIdentity
from kio.schema.list_groups.v4 import ListGroupsRequest
from kio.schema.offset_commit.v9 import OffsetCommitRequest, OffsetCommitResponse
from kio.schema.offset_commit.v9.request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kio.schema.offset_delete.v0 import OffsetDeleteRequest, OffsetDeleteResponse
from kio.schema.offset_delete.v0.request import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from kio.schema.offset_fetch.v9 import OffsetFetchRequest
from kio.schema.offset_fetch.v9.request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.offset_fetch.v9.response import OffsetFetchResponsePartitions
from kio.schema.sync_group.v5 import SyncGroupRequest, SyncGroupResponse
from kio.schema.sync_group.v5.request import SyncGroupRequestAssignment
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from examples.broker.controller.metadata_cache import MetadataCache
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.handlers.group_admin import delete_groups, describe_groups, list_groups
from examples.broker.handlers.group_membership import heartbeat, join_group, leave_group, sync_group
from examples.broker.handlers.group_offsets import offset_commit, offset_delete, offset_fetch
from examples.broker.metadata import PartitionState
from examples.broker.protocol.apis import JOIN_GROUP, OFFSET_COMMIT, SYNC_GROUP
from examples.broker.protocol.codec import RequestContext
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.group_client import MemoryLog, lead
from tests.examples.broker.leader_broker import image_of

READERS, ELSEWHERE = GroupId("readers"), GroupId("led elsewhere")
EVENTS = TopicName("events")
CONTEXT = RequestContext(JOIN_GROUP, JOIN_GROUP.max_version, 1, "reader", "10.0.0.1")
# The topic has two partitions.
CACHE = MetadataCache(0)
CACHE.update(replace(image_of([PartitionState((0,), (0,), leader=0)] * 2), version=1))


def seconds(duration: float) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(seconds=duration))


@pytest.fixture
async def groups(virtual_time: VirtualTimeLoop) -> AsyncIterator[GroupCoordinator]:
    """A coordinator of the group READERS, but not of the other group."""
    ended = asyncio.Event()
    started: asyncio.Future[GroupCoordinator] = asyncio.get_running_loop().create_future()

    async def host() -> None:
        async with GroupCoordinator.running(0, MemoryLog()) as coordinator:
            await lead(coordinator, coordinator.partition_for(READERS))
            started.set_result(coordinator)
            await ended.wait()

    hosting = asyncio.create_task(host())
    yield await started
    ended.set()
    await hosting


async def join(
    groups: GroupCoordinator,
    member_id: str = "",
    *,
    version: int = JOIN_GROUP.max_version,
    group_id: GroupId = READERS,
    instance: str | None = None,
    rebalance_timeout: float = 60,
) -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout=seconds(10),
        rebalance_timeout=seconds(rebalance_timeout),
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"subscription"),),
    )
    context = RequestContext(JOIN_GROUP, version, 1, "reader", "10.0.0.1")
    return await join_group(groups, context, request)


async def sync(groups: GroupCoordinator, joined: JoinGroupResponse) -> SyncGroupResponse:
    assignments = tuple(
        SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"assigned")
        for member in joined.members
    )
    request = SyncGroupRequest(
        group_id=READERS,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=assignments,
    )
    return await sync_group(groups, CONTEXT, request)


async def stable(groups: GroupCoordinator) -> JoinGroupResponse:
    joined = await join(groups, (await join(groups)).member_id)
    assert (await sync(groups, joined)).error_code is ErrorCode.none
    return joined


async def commit(
    groups: GroupCoordinator,
    *offsets: int,
    group_id: GroupId = READERS,
    generation_id: int = -1,
    context: RequestContext = CONTEXT,
) -> OffsetCommitResponse:
    """Commit one offset for each partition."""
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=i32(index), committed_offset=i64(offset), committed_metadata=None
        )
        for index, offset in enumerate(offsets)
    )
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=i32(generation_id),
        member_id="",
        topics=(OffsetCommitRequestTopic(name=EVENTS, partitions=partitions),),
    )
    return await offset_commit(groups, CACHE, context, request)


async def test_a_member_joins_syncs_sends_heartbeats_and_leaves(groups: GroupCoordinator) -> None:
    newcomer = await join(groups)
    assert newcomer.error_code is ErrorCode.member_id_required
    assert newcomer.member_id.startswith("reader-")
    joined = await join(groups, newcomer.member_id)
    assert (joined.error_code, joined.generation_id) == (ErrorCode.none, 1)
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert joined.leader == joined.member_id == newcomer.member_id
    assert [(member.member_id, member.metadata) for member in joined.members] == [
        (joined.member_id, b"subscription")
    ]
    synced = await sync(groups, joined)
    assert (synced.error_code, synced.assignment, synced.protocol_name) == (
        ErrorCode.none,
        b"assigned",
        "range",
    )
    beat = HeartbeatRequest(group_id=READERS, generation_id=i32(1), member_id=joined.member_id)
    assert (await heartbeat(groups, CONTEXT, beat)).error_code is ErrorCode.none
    leaving = LeaveGroupRequest(
        group_id=READERS,
        members=(MemberIdentity(member_id=joined.member_id), MemberIdentity(member_id="stranger")),
    )
    left = await leave_group(groups, CONTEXT, leaving)
    assert left.error_code is ErrorCode.none
    assert [(entry.member_id, entry.error_code) for entry in left.members] == [
        (joined.member_id, ErrorCode.none),
        ("stranger", ErrorCode.unknown_member_id),
    ]
    assert (await heartbeat(groups, CONTEXT, beat)).error_code is ErrorCode.unknown_member_id


async def test_clients_before_version_4_join_at_once(groups: GroupCoordinator) -> None:
    assert (await join(groups, version=3)).error_code is ErrorCode.none


async def test_only_clients_of_version_9_may_skip_the_assignment(groups: GroupCoordinator) -> None:
    joined = await join(groups, instance="one")
    await sync(groups, joined)
    again = await join(groups, instance="one", version=8)
    assert (again.skip_assignment, again.leader) == (False, joined.member_id)
    newest = await join(groups, instance="one", version=9)
    assert (newest.skip_assignment, newest.leader) == (True, newest.member_id)


async def test_without_a_rebalance_timeout_the_session_timeout_counts(
    groups: GroupCoordinator, virtual_time: VirtualTimeLoop
) -> None:
    first = await join(groups, instance="one", rebalance_timeout=-0.001)
    await sync(groups, first)
    joined = await join(groups, instance="two", rebalance_timeout=0)
    assert joined.error_code is ErrorCode.none
    assert virtual_time.time() == 3 + 10


async def test_every_member_request_is_refused_by_a_broker_that_does_not_coordinate(
    groups: GroupCoordinator,
) -> None:
    refused = ErrorCode.not_coordinator
    assert (await join(groups, group_id=ELSEWHERE)).error_code is refused
    syncing = SyncGroupRequest(
        group_id=ELSEWHERE,
        generation_id=i32(1),
        member_id="m",
        protocol_type="consumer",
        protocol_name="range",
        assignments=(),
    )
    assert (await sync_group(groups, CONTEXT, syncing)).error_code is refused
    beat = HeartbeatRequest(group_id=ELSEWHERE, generation_id=i32(1), member_id="m")
    assert (await heartbeat(groups, CONTEXT, beat)).error_code is refused
    leaving = LeaveGroupRequest(group_id=ELSEWHERE, members=(MemberIdentity(member_id="m"),))
    assert (await leave_group(groups, CONTEXT, leaving)).error_code is refused


async def test_committed_offsets_are_fetched_by_partition_or_all_at_once(groups: GroupCoordinator) -> None:
    committed = await commit(groups, 7, 8)
    assert [partition.error_code for partition in committed.topics[0].partitions] == [ErrorCode.none] * 2
    some = OffsetFetchRequestGroup(
        group_id=READERS,
        topics=(OffsetFetchRequestTopics(name=EVENTS, partition_indexes=(i32(1), i32(2))),),
    )
    every = OffsetFetchRequestGroup(group_id=READERS, topics=None)
    fetched = await offset_fetch(groups, CONTEXT, OffsetFetchRequest(groups=(some, every)))
    committed_offsets = [
        [
            (topic.name, partition.partition_index, partition.committed_offset, partition.metadata)
            for topic in group.topics
            for partition in topic.partitions
        ]
        for group in fetched.groups
    ]
    assert committed_offsets == [
        [(EVENTS, 1, 8, ""), (EVENTS, 2, -1, "")],
        [(EVENTS, 0, 7, ""), (EVENTS, 1, 8, "")],
    ]
    assert [group.error_code for group in fetched.groups] == [ErrorCode.none] * 2


@pytest.mark.parametrize(("version", "error"), [(8, "illegal_generation"), (9, "group_id_not_found")])
async def test_a_commit_that_is_refused_is_refused_for_every_partition(
    groups: GroupCoordinator, version: int, error: str
) -> None:
    context = replace(CONTEXT, api=OFFSET_COMMIT, version=version)
    refused = await commit(groups, 7, 8, generation_id=3, context=context)
    assert [partition.error_code.name for partition in refused.topics[0].partitions] == [error] * 2


async def test_a_member_that_syncs_has_to_name_its_protocol(groups: GroupCoordinator) -> None:
    joined = await stable(groups)
    request = SyncGroupRequest(
        group_id=READERS, generation_id=joined.generation_id, member_id=joined.member_id, assignments=()
    )
    answers = [
        (await sync_group(groups, replace(CONTEXT, api=SYNC_GROUP, version=version), request)).error_code
        for version in (4, 5)
    ]
    assert answers == [ErrorCode.none, ErrorCode.inconsistent_group_protocol]


async def test_a_refused_offset_fetch_has_the_error_for_the_group_and_its_partitions(
    groups: GroupCoordinator,
) -> None:
    topics = (OffsetFetchRequestTopics(name=EVENTS, partition_indexes=(i32(1),)),)
    asked = OffsetFetchRequestGroup(group_id=ELSEWHERE, topics=topics)
    (group,) = (await offset_fetch(groups, CONTEXT, OffsetFetchRequest(groups=(asked,)))).groups
    assert group.error_code is ErrorCode.not_coordinator
    assert group.topics[0].partitions == (
        OffsetFetchResponsePartitions(
            partition_index=i32(1),
            committed_offset=i64(-1),
            metadata="",
            error_code=ErrorCode.not_coordinator,
        ),
    )


async def test_groups_are_described_listed_and_deleted(groups: GroupCoordinator) -> None:
    joined = await stable(groups)
    asked = DescribeGroupsRequest(groups=(READERS, ELSEWHERE), include_authorized_operations=False)
    readers, elsewhere = (await describe_groups(groups, CONTEXT, asked)).groups
    assert (readers.error_code, readers.group_state, readers.protocol_type, readers.protocol_data) == (
        ErrorCode.none,
        "Stable",
        "consumer",
        "range",
    )
    (member,) = readers.members
    assert (member.member_id, member.client_id, member.client_host) == (
        joined.member_id,
        "reader",
        "10.0.0.1",
    )
    assert (member.member_metadata, member.member_assignment) == (b"subscription", b"assigned")
    assert (elsewhere.error_code, elsewhere.group_state) == (ErrorCode.not_coordinator, "")
    listed = await list_groups(groups, CONTEXT, ListGroupsRequest())
    assert [(group.group_id, group.group_state, group.protocol_type) for group in listed.groups] == [
        (READERS, "Stable", "consumer")
    ]
    assert (await list_groups(groups, CONTEXT, ListGroupsRequest(states_filter=("Empty",)))).groups == ()
    asked_for = ListGroupsRequest(states_filter=("stable", "Dead"))
    assert len((await list_groups(groups, CONTEXT, asked_for)).groups) == 1
    groups.elected((groups.partition_for(READERS) + 1) % 50)
    loading = await list_groups(groups, CONTEXT, ListGroupsRequest())
    assert (loading.error_code, loading.groups) == (ErrorCode.coordinator_load_in_progress, ())
    deletion = DeleteGroupsRequest(groups_names=(READERS, READERS))
    (result,) = (await delete_groups(groups, CONTEXT, deletion)).results
    assert result.error_code is ErrorCode.non_empty_group
    groups.leave(READERS, [member.identity for member in groups.describe_group(READERS).members.values()])
    (result,) = (await delete_groups(groups, CONTEXT, deletion)).results
    assert result.error_code is ErrorCode.none
    assert groups.list_groups() == []


async def test_a_commit_for_a_partition_that_does_not_exist_is_refused_alone(
    groups: GroupCoordinator,
) -> None:
    answers = (await commit(groups, 7, 8, 9)).topics[0].partitions
    assert [answer.error_code for answer in answers] == [
        ErrorCode.none,
        ErrorCode.none,
        ErrorCode.unknown_topic_or_partition,
    ]
    assert {entry.partition for entry in groups.fetch_offsets(READERS)} == {0, 1}


async def delete_offsets(
    groups: GroupCoordinator, *indexes: int, group_id: GroupId = READERS
) -> OffsetDeleteResponse:
    partitions = tuple(OffsetDeleteRequestPartition(partition_index=i32(index)) for index in indexes)
    topics = (OffsetDeleteRequestTopic(name=EVENTS, partitions=partitions),)
    request = OffsetDeleteRequest(group_id=group_id, topics=topics)
    return await offset_delete(groups, CACHE, CONTEXT, request)


async def test_the_deletion_of_each_offset_is_answered(groups: GroupCoordinator) -> None:
    await commit(groups, 7, 8)
    response = await delete_offsets(groups, 0, 2)
    assert response.error_code is ErrorCode.none
    assert [(entry.partition_index, entry.error_code) for entry in response.topics[0].partitions] == [
        (0, ErrorCode.none),
        (2, ErrorCode.unknown_topic_or_partition),
    ]
    assert {entry.partition for entry in groups.fetch_offsets(READERS)} == {1}


async def test_offsets_of_another_coordinators_group_are_not_deleted(groups: GroupCoordinator) -> None:
    response = await delete_offsets(groups, 0, group_id=ELSEWHERE)
    assert (response.error_code, response.topics) == (ErrorCode.not_coordinator, ())
