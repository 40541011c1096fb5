"""Old versions with another structure than the newest one."""

import pytest

from examples.broker.errors import ErrorCode
from examples.broker.protocol.apis import (
    FIND_COORDINATOR,
    JOIN_GROUP,
    LEAVE_GROUP,
    METADATA,
    OFFSET_FETCH,
    Api,
)
from examples.broker.protocol.versions import downgrade, request_class, upgrade
from tests.examples.broker.protocol.plain_messages import Plain, message, plain


def upgraded(api: Api, version: int, **values: Plain) -> Plain:
    return plain(upgrade(api, version)(message(request_class(api, version), values)))


def downgraded(api: Api, version: int, **values: Plain) -> Plain:
    return plain(downgrade(api, version)(message(api.response, values)))


def test_a_newest_request_or_response_is_not_converted() -> None:
    assert upgrade(METADATA, 13)(METADATA) is METADATA
    assert downgrade(METADATA, 13)(METADATA) is METADATA


def test_in_metadata_0_alone_no_topics_mean_all_topics() -> None:
    assert upgraded(METADATA, 0, topics=[])["topics"] is None
    assert upgraded(METADATA, 1, topics=[])["topics"] == []
    assert upgraded(METADATA, 1, topics=None)["topics"] is None
    assert upgraded(METADATA, 0, topics=[{"name": "events"}]) == {
        "topics": [{"name": "events", "topic_id": None}],
        "allow_auto_topic_creation": True,
        "include_topic_authorized_operations": False,
    }


def test_old_metadata_versions_get_no_authorized_operations_of_the_cluster() -> None:
    assert downgraded(METADATA, 10, controller_id=1)["cluster_authorized_operations"] == -(2**31)


def test_in_join_group_0_the_session_timeout_is_the_rebalance_timeout() -> None:
    assert upgraded(JOIN_GROUP, 0, session_timeout=9000)["rebalance_timeout"] == 9000


def test_before_join_group_7_no_protocol_is_an_empty_string() -> None:
    names = [downgraded(JOIN_GROUP, version, protocol_name=None)["protocol_name"] for version in (6, 7)]
    assert names == ["", None]


@pytest.mark.parametrize("version", range(4))
def test_old_find_coordinator_versions_have_one_key(version: int) -> None:
    request = upgraded(FIND_COORDINATOR, version, key="group")
    assert (request["coordinator_keys"], request["key_type"]) == (["group"], 0)
    coordinator = {
        "key": "group",
        "node_id": 2,
        "host": "here",
        "port": 9092,
        "error_code": ErrorCode.coordinator_not_available,
        "error_message": "none yet",
    }
    response = downgraded(FIND_COORDINATOR, version, coordinators=[coordinator])
    assert (response["node_id"], response["host"], response["port"]) == (2, "here", 9092)
    assert response["error_code"] == "coordinator_not_available"
    assert version == 0 or response["error_message"] == "none yet"


def test_the_kind_of_coordinator_is_kept() -> None:
    assert upgraded(FIND_COORDINATOR, 1, key="transaction", key_type=1)["key_type"] == 1


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("of_group", "of_member", "told"),
    [
        (ErrorCode.none, ErrorCode.none, "none"),
        (ErrorCode.none, ErrorCode.unknown_member_id, "unknown_member_id"),
        (ErrorCode.not_coordinator, ErrorCode.none, "not_coordinator"),
    ],
)
def test_old_leave_group_versions_have_one_member(
    version: int, of_group: ErrorCode, of_member: ErrorCode, told: str
) -> None:
    request = upgraded(LEAVE_GROUP, version, group_id="group", member_id="me")
    assert request["group_id"] == "group"
    assert request["members"] == [{"member_id": "me", "group_instance_id": None, "reason": None}]
    members = [{"member_id": "me", "group_instance_id": None, "error_code": of_member}]
    response = downgraded(LEAVE_GROUP, version, error_code=of_group, members=members)
    assert response["error_code"] == told


@pytest.mark.parametrize("version", range(2, 8))
def test_old_offset_fetch_versions_have_one_group(version: int) -> None:
    (every_topic,) = upgraded(OFFSET_FETCH, version, group_id="group", topics=None)["groups"]
    assert (every_topic["group_id"], every_topic["topics"]) == ("group", None)
    partition = {
        "partition_index": 3,
        "committed_offset": 5,
        "committed_leader_epoch": 1,
        "metadata": "",
        "error_code": ErrorCode.unstable_offset_commit,
    }
    group = {
        "group_id": "group",
        "topics": [{"name": "events", "partitions": [partition]}],
        "error_code": ErrorCode.not_coordinator,
    }
    response = downgraded(OFFSET_FETCH, version, groups=[group])
    assert response["error_code"] == "not_coordinator"
    (topic,) = response["topics"]
    (offset,) = topic["partitions"]
    assert topic["name"] == "events"
    assert (offset["partition_index"], offset["committed_offset"]) == (3, 5)
    assert offset["error_code"] == "unstable_offset_commit"


def test_the_topics_and_the_stability_asked_for_are_kept() -> None:
    topics = [{"name": "events", "partition_indexes": [3, 4]}]
    request = upgraded(OFFSET_FETCH, 7, group_id="group", topics=topics, require_stable=True)
    assert request["require_stable"]
    (group,) = request["groups"]
    assert [(topic["name"], topic["partition_indexes"]) for topic in group["topics"]] == [("events", [3, 4])]
