"""The requests of group members: join, sync, heartbeat and leave."""

import uuid
from dataclasses import replace
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.group import Group, GroupState
from examples.broker.group.group_log import group_record
from examples.broker.group.group_store import GroupStore
from examples.broker.group.member import Member
from examples.broker.group.rebalance import Rebalance
from examples.broker.group.requests import (
    UNKNOWN_MEMBER,
    JoinRequest,
    JoinResult,
    MemberIdentity,
    SyncRequest,
    SyncResult,
)

# A member id begins with this much of the client's name. The protocol limits its length to that of a name.
_NAME_IN_ID: Final = 255


class Membership:
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup for the groups of this coordinator."""

    def __init__(self, store: GroupStore, rebalance: Rebalance, max_size: int) -> None:
        self._store = store
        self._rebalance = rebalance
        self._max_size = max_size

    async def join(self, group: Group, request: JoinRequest) -> JoinResult:
        """Join the group. Returns when its next generation begins, or at once if no rebalance is needed."""
        self._check_size(group, request.member)
        if not group.supports(request.protocol_type, request.protocols):
            raise ApiError(
                ErrorCode.inconsistent_group_protocol, f"{group!r} supports none of the client's protocols"
            )
        if request.member.member_id == UNKNOWN_MEMBER:
            return await self._join_anew(group, request)
        # Static members get no member id before they join.
        if request.member.group_instance_id is None and request.member.member_id in group.pending_members:
            return await self._join_as(group, request.member.member_id, request)
        return await self._join_again(group, group.member(request.member), request)

    async def sync(self, group: Group, request: SyncRequest) -> SyncResult:
        """Return the member's assignment, once the leader has brought it and the log has it."""
        member = group.member(request.member)
        group.check_generation(request.generation_id)
        if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (
            None,
            group.protocol_name,
        ):
            raise ApiError(ErrorCode.inconsistent_group_protocol, f"{group!r} uses another protocol")
        if group.state is GroupState.PREPARING_REBALANCE:
            self._rebalance.heartbeat(group, member)
            raise ApiError(ErrorCode.rebalance_in_progress, f"{group!r} waits for all members to rejoin")
        if group.state is GroupState.STABLE:
            self._rebalance.record_sync(group, member)
            return group.sync_result(member)
        return await self._rebalance.sync(group, member, request.assignments)

    def heartbeat(self, group: Group, generation_id: int, identity: MemberIdentity) -> None:
        """Extend the member's session. Raises ApiError REBALANCE_IN_PROGRESS when it has to rejoin."""
        member = group.member(identity)
        group.check_generation(generation_id)
        self._rebalance.heartbeat(group, member)
        if group.state is GroupState.PREPARING_REBALANCE:
            raise ApiError(ErrorCode.rebalance_in_progress, f"{group!r} waits for all members to rejoin")

    def check_commit(self, group: Group, generation_id: int, identity: MemberIdentity) -> None:
        """Check that a member may commit offsets, and extend its session. Raises ApiError if it may not.

        It may commit during PREPARING_REBALANCE: before a member rejoins, it commits the offsets it has read.
        """
        member = group.member(identity)
        group.check_generation(generation_id)
        self._rebalance.heartbeat(group, member)
        if group.state is GroupState.COMPLETING_REBALANCE:
            raise ApiError(ErrorCode.rebalance_in_progress, f"{group!r} waits for new assignments")

    def leave(self, group: Group, identity: MemberIdentity) -> None:
        """Remove a member. An administrator may name a static member by its group instance id alone."""
        if identity.member_id in group.pending_members:
            self._rebalance.remove_pending_member(group, identity.member_id)
            return
        instance_id = identity.group_instance_id
        if identity.member_id == UNKNOWN_MEMBER and instance_id in group.static_members:
            identity = MemberIdentity(group.static_members[instance_id], instance_id)
        self._rebalance.remove(group, group.member(identity))

    def _check_size(self, group: Group, identity: MemberIdentity) -> None:
        member = group.members.get(identity.member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            # The members that rejoin first have the places.
            size = sum(entry.awaits_join for entry in group.members.values())
            has_place = member is not None and member.awaits_join
        else:
            size = len(group.members)
            has_place = member is not None
        if not has_place and size >= self._max_size:
            if member is not None:
                # The rebalance must not wait for a member that came too late.
                self._rebalance.remove(group, member)
            raise ApiError(ErrorCode.group_max_size_reached, f"{group!r} is full")

    async def _join_anew(self, group: Group, request: JoinRequest) -> JoinResult:
        instance_id = request.member.group_instance_id
        member_id = f"{(instance_id or request.client_id)[:_NAME_IN_ID]}-{uuid.uuid4()}"
        if instance_id in group.static_members:
            member = group.members[group.static_members[instance_id]]
            return await self._take_over(group, member, member_id, request)
        if request.requires_known_member_id and instance_id is None:
            self._rebalance.add_pending_member(group, member_id, request.session_timeout)
            return JoinResult(ErrorCode.member_id_required, member_id)
        return await self._join_as(group, member_id, request)

    async def _join_as(self, group: Group, member_id: str, request: JoinRequest) -> JoinResult:
        member = Member.of(member_id, request)
        group.add(member, request.protocol_type)
        return await self._rebalance.rejoin(group, member)

    async def _join_again(self, group: Group, member: Member, request: JoinRequest) -> JoinResult:
        unchanged = member.protocols == request.protocols
        # The leader of a stable group rejoins to get a rebalance. Another member may have missed the answer.
        leads = member.member_id == group.leader_id
        completing = group.state is GroupState.COMPLETING_REBALANCE
        if unchanged and (completing or (group.state is GroupState.STABLE and not leads)):
            self._rebalance.heartbeat(group, member)
            return group.join_result(member)
        member.update(request)
        return await self._rebalance.rejoin(group, member)

    async def _take_over(
        self, group: Group, member: Member, member_id: str, request: JoinRequest
    ) -> JoinResult:
        """Replace a static member's client. In a stable group there is no rebalance for it (KIP-345)."""
        leader_id = group.leader_id
        successor = member.renamed(member_id)
        successor.update(request)
        self._rebalance.replace(group, member, successor)
        if group.state is not GroupState.STABLE or group.select_protocol() != group.protocol_name:
            return await self._rebalance.rejoin(group, successor)
        answer = self._rebalance.begin_join(group, successor)
        self._store_successor(group, successor, request, leader_id)
        return await self._rebalance.answered(group, successor, answer)

    def _store_successor(
        self, group: Group, successor: Member, request: JoinRequest, leader_id: str | None
    ) -> None:
        def stored(error: ErrorCode) -> None:
            if group.state is not GroupState.STABLE:
                # A rebalance has begun, and will answer it. One that is over has answered it.
                return
            joined = group.join_result(successor)
            if error is not ErrorCode.none:
                joined = JoinResult(error, successor.member_id)
            elif request.supports_skip_assignment:
                joined = replace(joined, skip_assignment=group.leader_id == successor.member_id)
            else:
                # An older client that knows that it leads would assign partitions, without the other members.
                joined = replace(joined, leader_id=leader_id or "", members=())
            if successor.answer_join(joined):
                self._rebalance.heartbeat(group, successor)

        assignments = {entry.member_id: entry.assignment for entry in group.members.values()}
        self._store.append(group, [group_record(group, assignments)], stored)
