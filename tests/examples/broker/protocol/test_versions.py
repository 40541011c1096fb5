"""Old versions with another structure than the newest one."""

from datetime import timedelta
from typing import Any

import kio.schema.offset_fetch.v7.request as offset_fetch_request_v7
import pytest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6 import FindCoordinatorResponse
from kio.schema.find_coordinator.v6.response import Coordinator
from kio.schema.join_group.v9 import JoinGroupResponse
from kio.schema.leave_group.v5 import LeaveGroupResponse
from kio.schema.leave_group.v5.response import MemberResponse
from kio.schema.metadata.v0.request import MetadataRequestTopic
from kio.schema.metadata.v13 import MetadataResponse
from kio.schema.offset_fetch.v9 import OffsetFetchResponse
from kio.schema.offset_fetch.v9.response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kio.schema.types import BrokerId, GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from examples.broker.protocol.apis import (
    FIND_COORDINATOR,
    JOIN_GROUP,
    LEAVE_GROUP,
    METADATA,
    OFFSET_FETCH,
    Api,
)
from examples.broker.protocol.versions import downgrade, request_class, upgrade

NOT_THROTTLED = i32Timedelta.parse(timedelta(0))


def upgraded(api: Api[Any, Any], version: int, **fields: Any) -> Any:
    request_type: Any = request_class(api, version)
    return upgrade(api, version)(request_type(**fields))


def test_a_newest_request_or_response_is_not_converted() -> None:
    assert upgrade(METADATA, 13)(METADATA) is METADATA
    assert downgrade(METADATA, 13)(METADATA) is METADATA


def test_in_metadata_0_alone_no_topics_mean_all_topics() -> None:
    assert upgraded(METADATA, 0, topics=()).topics is None
    assert upgraded(METADATA, 1, topics=()).topics == ()
    assert upgraded(METADATA, 1, topics=None).topics is None
    topic = MetadataRequestTopic(name=TopicName("events"))
    request = upgraded(METADATA, 0, topics=(topic,))
    assert [(topic.name, topic.topic_id) for topic in request.topics] == [("events", None)]
    assert request.allow_auto_topic_creation
    assert request.include_topic_authorized_operations is False


def test_old_metadata_versions_get_no_authorized_operations_of_the_cluster() -> None:
    response = MetadataResponse(
        throttle_time=NOT_THROTTLED,
        brokers=(),
        topics=(),
        error_code=ErrorCode.none,
        controller_id=BrokerId(1),
    )
    assert downgrade(METADATA, 10)(response).cluster_authorized_operations == -(2**31)


def test_in_join_group_0_the_session_timeout_is_the_rebalance_timeout() -> None:
    timeout = i32Timedelta.parse(timedelta(seconds=9))
    request = upgraded(
        JOIN_GROUP,
        0,
        group_id=GroupId("group"),
        session_timeout=timeout,
        member_id="",
        protocol_type="consumer",
        protocols=(),
    )
    assert request.rebalance_timeout == timeout


def test_before_join_group_7_no_protocol_is_an_empty_string() -> None:
    response = JoinGroupResponse(
        throttle_time=NOT_THROTTLED,
        error_code=ErrorCode.none,
        protocol_name=None,
        leader="",
        member_id="",
        members=(),
    )
    assert downgrade(JOIN_GROUP, 6)(response).protocol_name == ""
    assert downgrade(JOIN_GROUP, 7)(response).protocol_name is None


@pytest.mark.parametrize("version", range(4))
def test_old_find_coordinator_versions_have_one_key(version: int) -> None:
    request = upgraded(FIND_COORDINATOR, version, key="group")
    assert (request.coordinator_keys, request.key_type) == (("group",), 0)
    coordinator = Coordinator(
        key="group",
        node_id=BrokerId(2),
        host="here",
        port=i32(9092),
        error_code=ErrorCode.coordinator_not_available,
        error_message="none yet",
    )
    newest = FindCoordinatorResponse(throttle_time=NOT_THROTTLED, coordinators=(coordinator,))
    response = downgrade(FIND_COORDINATOR, version)(newest)
    assert (response.node_id, response.host, response.port) == (2, "here", 9092)
    assert response.error_code is ErrorCode.coordinator_not_available
    assert version == 0 or response.error_message == "none yet"


def test_the_kind_of_coordinator_is_kept() -> None:
    assert upgraded(FIND_COORDINATOR, 1, key="transaction", key_type=1).key_type == 1


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("of_group", "of_member", "told"),
    [
        (ErrorCode.none, ErrorCode.none, ErrorCode.none),
        (ErrorCode.none, ErrorCode.unknown_member_id, ErrorCode.unknown_member_id),
        (ErrorCode.not_coordinator, ErrorCode.none, ErrorCode.not_coordinator),
    ],
)
def test_old_leave_group_versions_have_one_member(
    version: int, of_group: ErrorCode, of_member: ErrorCode, told: ErrorCode
) -> None:
    request = upgraded(LEAVE_GROUP, version, group_id=GroupId("group"), member_id="me")
    (member,) = request.members
    assert (request.group_id, member.member_id, member.group_instance_id) == ("group", "me", None)
    left = MemberResponse(member_id="me", group_instance_id=None, error_code=of_member)
    response = LeaveGroupResponse(throttle_time=NOT_THROTTLED, error_code=of_group, members=(left,))
    assert downgrade(LEAVE_GROUP, version)(response).error_code is told


@pytest.mark.parametrize("version", range(2, 8))
def test_old_offset_fetch_versions_have_one_group(version: int) -> None:
    (every_topic,) = upgraded(OFFSET_FETCH, version, group_id=GroupId("group"), topics=None).groups
    assert (every_topic.group_id, every_topic.topics) == ("group", None)
    partition = OffsetFetchResponsePartitions(
        partition_index=i32(3),
        committed_offset=i64(5),
        committed_leader_epoch=i32(1),
        metadata="",
        error_code=ErrorCode.unstable_offset_commit,
    )
    group = OffsetFetchResponseGroup(
        group_id=GroupId("group"),
        topics=(OffsetFetchResponseTopics(name=TopicName("events"), partitions=(partition,)),),
        error_code=ErrorCode.not_coordinator,
    )
    newest = OffsetFetchResponse(throttle_time=NOT_THROTTLED, groups=(group,))
    response = downgrade(OFFSET_FETCH, version)(newest)
    assert response.error_code is ErrorCode.not_coordinator
    (topic,) = response.topics
    (offset,) = topic.partitions
    assert (topic.name, offset.partition_index, offset.committed_offset) == ("events", 3, 5)
    assert offset.error_code is ErrorCode.unstable_offset_commit


def test_the_topics_and_the_stability_asked_for_are_kept() -> None:
    topic = offset_fetch_request_v7.OffsetFetchRequestTopic(
        name=TopicName("events"), partition_indexes=(i32(3), i32(4))
    )
    request = upgraded(OFFSET_FETCH, 7, group_id=GroupId("group"), topics=(topic,), require_stable=True)
    assert request.require_stable
    (topics,) = request.groups[0].topics
    assert (topics.name, topics.partition_indexes) == ("events", (3, 4))
