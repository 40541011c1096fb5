"""Conversion between the API versions of clients and the newest version, which alone handlers see.

Where versions differ by added or removed fields, ``converter`` is enough. Where an old version has the same
content in another structure, there is a bridge: a function between the last version with that structure and
the newest.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

import kio.schema.find_coordinator.v3 as find_coordinator_v3
import kio.schema.join_group.v0 as join_group_v0
import kio.schema.leave_group.v2 as leave_group_v2
import kio.schema.metadata.v0 as metadata_v0
import kio.schema.offset_fetch.v7 as offset_fetch_v7
from kio.index import load_request_schema, load_response_schema
from kio.schema.find_coordinator.v6 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.join_group.v9 import JoinGroupRequest
from kio.schema.leave_group.v5 import LeaveGroupRequest, LeaveGroupResponse
from kio.schema.leave_group.v5.request import MemberIdentity
from kio.schema.metadata.v13 import MetadataRequest
from kio.schema.offset_fetch.v7.request import OffsetFetchRequestTopic
from kio.schema.offset_fetch.v7.response import OffsetFetchResponseTopic
from kio.schema.offset_fetch.v9 import OffsetFetchRequest, OffsetFetchResponse
from kio.schema.offset_fetch.v9.request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.offset_fetch.v9.response import OffsetFetchResponseTopics
from kio.static.protocol import RequestPayload, ResponsePayload

from examples.broker.errors import ErrorCode
from examples.broker.protocol.apis import (
    FIND_COORDINATOR,
    JOIN_GROUP,
    LEAVE_GROUP,
    METADATA,
    OFFSET_FETCH,
    Api,
)
from examples.broker.protocol.conversion import converter

Convert = Callable[[Any], Any]


@cache
def request_class(api: Api, version: int) -> type[RequestPayload]:
    return load_request_schema(api.key, version)


@cache
def response_class(api: Api, version: int) -> type[ResponsePayload]:
    return load_response_schema(api.key, version)


@cache
def upgrade(api: Api, version: int) -> Convert:
    """Return a function from a request of ``version`` to one of the newest version."""
    old, newest = request_class(api, version), request_class(api, api.max_version)
    last, bridge = _REQUEST_BRIDGES.get(api, _NO_BRIDGE)
    if version > last:
        return converter(old, newest)
    approach = converter(old, request_class(api, last))
    return lambda request: bridge(approach(request))


@cache
def downgrade(api: Api, version: int) -> Convert:
    """Return a function from a response of the newest version to one of ``version``."""
    old, newest = response_class(api, version), response_class(api, api.max_version)
    last, bridge = _RESPONSE_BRIDGES.get(api, _NO_BRIDGE)
    if version > last:
        return converter(newest, old)
    descent = converter(response_class(api, last), old)
    return lambda response: descent(bridge(response))


def _every_topic(request: metadata_v0.MetadataRequest) -> MetadataRequest:
    """In version 0 an empty list of topics means all topics. Since version 1 null does."""
    upgraded: MetadataRequest = converter(metadata_v0.MetadataRequest, MetadataRequest)(request)
    return upgraded if upgraded.topics else replace(upgraded, topics=None)


def _one_timeout(request: join_group_v0.JoinGroupRequest) -> JoinGroupRequest:
    """In version 0 the session timeout is the rebalance timeout, too."""
    upgraded: JoinGroupRequest = converter(join_group_v0.JoinGroupRequest, JoinGroupRequest)(request)
    return replace(upgraded, rebalance_timeout=request.session_timeout)


def _one_key(request: find_coordinator_v3.FindCoordinatorRequest) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=request.key_type, coordinator_keys=(request.key,))


def _one_coordinator(response: FindCoordinatorResponse) -> find_coordinator_v3.FindCoordinatorResponse:
    (coordinator,) = response.coordinators
    return find_coordinator_v3.FindCoordinatorResponse(
        throttle_time=response.throttle_time,
        error_code=coordinator.error_code,
        error_message=coordinator.error_message,
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


def _one_leaver(request: leave_group_v2.LeaveGroupRequest) -> LeaveGroupRequest:
    leaver = MemberIdentity(member_id=request.member_id, group_instance_id=None)
    return LeaveGroupRequest(group_id=request.group_id, members=(leaver,))


def _one_left(response: LeaveGroupResponse) -> leave_group_v2.LeaveGroupResponse:
    """Return the group's error, or else the member's."""
    errors = [response.error_code, *(member.error_code for member in response.members)]
    return leave_group_v2.LeaveGroupResponse(
        throttle_time=response.throttle_time,
        error_code=next((error for error in errors if error), ErrorCode.none),
    )


def _one_group(request: offset_fetch_v7.OffsetFetchRequest) -> OffsetFetchRequest:
    convert = converter(OffsetFetchRequestTopic, OffsetFetchRequestTopics)
    topics = None if request.topics is None else tuple(map(convert, request.topics))
    group = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    return OffsetFetchRequest(groups=(group,), require_stable=request.require_stable)


def _one_groups_offsets(response: OffsetFetchResponse) -> offset_fetch_v7.OffsetFetchResponse:
    (group,) = response.groups
    convert = converter(OffsetFetchResponseTopics, OffsetFetchResponseTopic)
    return offset_fetch_v7.OffsetFetchResponse(
        throttle_time=response.throttle_time,
        topics=tuple(map(convert, group.topics)),
        error_code=group.error_code,
    )


# The last version with the old structure, and the function from its request to the newest version, or from
# the newest response to its own.
_REQUEST_BRIDGES: Final[Mapping[Api, tuple[int, Convert]]] = {
    METADATA: (0, _every_topic),
    JOIN_GROUP: (0, _one_timeout),
    FIND_COORDINATOR: (3, _one_key),
    LEAVE_GROUP: (2, _one_leaver),
    OFFSET_FETCH: (7, _one_group),
}
_RESPONSE_BRIDGES: Final[Mapping[Api, tuple[int, Convert]]] = {
    FIND_COORDINATOR: (3, _one_coordinator),
    LEAVE_GROUP: (2, _one_left),
    OFFSET_FETCH: (7, _one_groups_offsets),
}
_NO_BRIDGE: Final[tuple[int, Convert]] = (-1, lambda entity: entity)
