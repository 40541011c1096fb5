"""DescribeGroups, ListGroups and DeleteGroups: groups as administrators see them."""

from kio.schema.delete_groups.v2 import DeleteGroupsRequest, DeleteGroupsResponse
from kio.schema.delete_groups.v2.response import DeletableGroupResult
from kio.schema.describe_groups.v5 import DescribeGroupsRequest, DescribeGroupsResponse
from kio.schema.describe_groups.v5.response import DescribedGroup, DescribedGroupMember
from kio.schema.list_groups.v4 import ListGroupsRequest, ListGroupsResponse
from kio.schema.list_groups.v4.response import ListedGroup
from kio.schema.types import GroupId

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext


async def describe_groups(
    coordinator: GroupCoordinator, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Return the members of each group and their assignments."""
    return DescribeGroupsResponse(
        throttle_time=NO_THROTTLE,
        groups=tuple(_described(coordinator, group_id) for group_id in request.groups),
    )


async def list_groups(
    coordinator: GroupCoordinator, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse:
    """Return the groups that this broker coordinates. Clients ask every broker."""
    try:
        groups = coordinator.list_groups(request.states_filter)
    except ApiError as refused:
        return ListGroupsResponse(throttle_time=NO_THROTTLE, error_code=refused.code, groups=())
    return ListGroupsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        groups=tuple(
            ListedGroup(
                group_id=GroupId(group.group_id),
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
            )
            for group in groups
        ),
    )


async def delete_groups(
    coordinator: GroupCoordinator, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    """Delete empty groups; return the answer for each."""
    return DeleteGroupsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            [
                DeletableGroupResult(group_id=group_id, error_code=await _deleted(coordinator, group_id))
                for group_id in dict.fromkeys(request.groups_names)
            ]
        ),
    )


async def _deleted(coordinator: GroupCoordinator, group_id: str) -> ErrorCode:
    try:
        await coordinator.delete_group(group_id)
    except ApiError as refused:
        return refused.code
    return ErrorCode.none


def _described(coordinator: GroupCoordinator, group_id: str) -> DescribedGroup:
    try:
        group = coordinator.describe_group(group_id)
    except ApiError as refused:
        return DescribedGroup(
            error_code=refused.code,
            group_id=GroupId(group_id),
            group_state="",
            protocol_type="",
            protocol_data="",
            members=(),
        )
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=GroupId(group_id),
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=group.assigned_protocol or "",
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.assigned_protocol),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ),
    )
