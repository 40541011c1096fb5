"""FindCoordinator, JoinGroup, SyncGroup, Heartbeat and LeaveGroup: the requests of members of a group."""

import logging
from typing import Final, Protocol

from kio.schema.find_coordinator.v6 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.find_coordinator.v6.response import Coordinator
from kio.schema.heartbeat.v4 import HeartbeatRequest, HeartbeatResponse
from kio.schema.join_group.v9 import JoinGroupRequest, JoinGroupResponse
from kio.schema.join_group.v9.response import JoinGroupResponseMember
from kio.schema.leave_group.v5 import LeaveGroupRequest, LeaveGroupResponse
from kio.schema.leave_group.v5.response import MemberResponse
from kio.schema.sync_group.v5 import SyncGroupRequest, SyncGroupResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.requests import JoinRequest, MemberIdentity, SyncRequest
from examples.broker.handlers.refusals import error_code, error_message, refused_transactions
from examples.broker.metadata import BrokerRegistration
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext

logger = logging.getLogger(__name__)

GROUP: Final = 0
TRANSACTION: Final = 1

REQUIRES_MEMBER_ID: Final = 4
"""From this version of JoinGroup on, new members join twice, first without a member id (KIP-394)."""

SUPPORTS_SKIP_ASSIGNMENT: Final = 9
"""From this version of JoinGroup on, the response can tell a leader not to assign (KIP-814)."""

NAMES_PROTOCOL: Final = 5
"""From this version of SyncGroup on, the request has to have the protocol (KIP-559)."""


class CoordinatorDirectory(Protocol):
    """The lookup of a group's coordinator."""

    async def coordinator_of(self, group_id: str) -> BrokerRegistration:
        """Return the group's coordinator. Raises ApiError COORDINATOR_NOT_AVAILABLE while there is none."""
        raise NotImplementedError


async def find_coordinator(
    directory: CoordinatorDirectory, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Return the coordinator of each group. Nothing else has one.

    The error is TRANSACTIONAL_ID_AUTHORIZATION_FAILED for a transaction, and INVALID_REQUEST for other keys.
    """
    coordinators = [
        await _coordinator(directory, context, request.key_type, key) for key in request.coordinator_keys
    ]
    return FindCoordinatorResponse(throttle_time=NO_THROTTLE, coordinators=tuple(coordinators))


async def join_group(
    coordinator: GroupCoordinator, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse:
    """Join a group, and answer when its next generation begins."""
    session_timeout = request.session_timeout.total_seconds()
    rebalance_timeout = request.rebalance_timeout.total_seconds()
    _log_reason("join", request.group_id, request.member_id, request.reason)
    result = await coordinator.join(
        JoinRequest(
            request.group_id,
            MemberIdentity(request.member_id, request.group_instance_id),
            request.protocol_type,
            tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
            session_timeout,
            # With a rebalance timeout of 0, the group would wait for absent static members in a busy loop.
            rebalance_timeout if rebalance_timeout > 0 else session_timeout,
            context.client_id or "",
            context.client_host,
            requires_known_member_id=context.version >= REQUIRES_MEMBER_ID,
            supports_skip_assignment=context.version >= SUPPORTS_SKIP_ASSIGNMENT,
        )
    )
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=result.error,
        generation_id=i32(result.generation_id),
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        leader=result.leader_id,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in result.members
        ),
    )


async def sync_group(
    coordinator: GroupCoordinator, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse:
    """Return a member's assignment, once the leader of the group has brought it."""
    if context.version >= NAMES_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.inconsistent_group_protocol,
            assignment=b"",
        )
    result = await coordinator.sync(
        SyncRequest(
            request.group_id,
            request.generation_id,
            MemberIdentity(request.member_id, request.group_instance_id),
            request.protocol_type,
            request.protocol_name,
            {entry.member_id: entry.assignment for entry in request.assignments},
        )
    )
    return SyncGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )


async def heartbeat(
    coordinator: GroupCoordinator, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse:
    """Extend a member's session. The answer says when the member has to rejoin."""
    error = ErrorCode.none
    try:
        identity = MemberIdentity(request.member_id, request.group_instance_id)
        coordinator.heartbeat(request.group_id, request.generation_id, identity)
    except ApiError as refused:
        error = refused.code
    return HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=error)


async def leave_group(
    coordinator: GroupCoordinator, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse:
    """Remove members from a group; return the answer for each."""
    for entry in request.members:
        _log_reason("leave", request.group_id, entry.member_id, entry.reason)
    identities = [MemberIdentity(entry.member_id, entry.group_instance_id) for entry in request.members]
    try:
        errors = coordinator.leave(request.group_id, identities)
    except ApiError as refused:
        return LeaveGroupResponse(throttle_time=NO_THROTTLE, error_code=refused.code, members=())
    return LeaveGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        members=tuple(
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=error,
            )
            for identity, error in zip(identities, errors, strict=True)
        ),
    )


async def _coordinator(
    directory: CoordinatorDirectory, context: RequestContext, key_type: int, key: str
) -> Coordinator:
    broker = BrokerRegistration(-1, "", -1)
    refused: ApiError | None = None
    try:
        if key_type == TRANSACTION:
            raise refused_transactions(context, key)
        if key_type != GROUP:
            raise ApiError(ErrorCode.invalid_request, f"key type {key_type} has no coordinator")
        broker = await directory.coordinator_of(key)
    except ApiError as error:
        refused = error
    return Coordinator(
        key=key,
        node_id=BrokerId(broker.broker_id),
        host=broker.host,
        port=i32(broker.port),
        error_code=error_code(refused),
        error_message=error_message(refused) or "",
    )


def _log_reason(verb: str, group_id: str, member_id: str, reason: str | None) -> None:
    """Log the reason that a member may give (KIP-800)."""
    if reason is not None:
        logger.info("%r wants to %s %r: %.255r", member_id, verb, group_id, reason)
