"""Rebalances: how a group gets to its next generation, and the waits on the way."""

import logging
from collections.abc import Mapping
from typing import TypeVar

from examples.broker.errors import ErrorCode
from examples.broker.group.group import Group, GroupState
from examples.broker.group.group_log import group_record
from examples.broker.group.group_store import GroupStore
from examples.broker.group.member import Member
from examples.broker.group.requests import JoinResult, SyncResult
from examples.broker.waits.heartbeat import (
    DelayedHeartbeat,
    check_heartbeat,
    park_heartbeat,
    record_heartbeat,
)
from examples.broker.waits.join import DelayedJoin, check_join, park_join
from examples.broker.waits.sync import DelayedSync, check_sync, park_sync
from purgatory import DelayedValue, OperationState, Purgatory

logger = logging.getLogger(__name__)

R = TypeVar("R")


class Rebalance:
    """The rebalances of all groups. Joins, syncs and the sessions of members each have a purgatory.

    Every member has a session. It does not end while the client waits for an answer, because then the client
    sends no heartbeats.
    """

    def __init__(
        self, store: GroupStore, join: Purgatory, sync: Purgatory, heartbeat: Purgatory, initial_delay: float
    ) -> None:
        self._store = store
        self._join = join
        self._sync = sync
        self._heartbeat = heartbeat
        self._initial_delay = initial_delay

    # Sessions

    def heartbeat(self, group: Group, member: Member) -> None:
        """Begin the member's session, or give it the whole session timeout again."""
        timeout = None if member.awaits_answer else member.session_timeout
        if not record_heartbeat(self._heartbeat, (group.group_id, member.member_id), timeout):
            self._begin_session(group, member.member_id, timeout)

    def add_pending_member(self, group: Group, member_id: str, session_timeout: float) -> None:
        """Wait for a new client to join with the member id that it was given."""
        group.pending_members.add(member_id)
        self._begin_session(group, member_id, session_timeout)

    def _begin_session(self, group: Group, member_id: str, timeout: float | None) -> None:
        session = DelayedHeartbeat(
            timeout,
            (group.group_id, member_id),
            lambda: member_id not in group,
            lambda: self._expire(group, member_id),
        )
        park_heartbeat(self._heartbeat, session)

    def _expire(self, group: Group, member_id: str) -> None:
        if member_id in group.pending_members:
            self.remove_pending_member(group, member_id)
            return
        logger.info("%r: %s sent no heartbeat within its session timeout", group, member_id)
        self.remove(group, group.members[member_id])

    # Members

    async def rejoin(self, group: Group, member: Member) -> JoinResult:
        """Return the answer to the join of a member, new or not. The group rebalances for it."""
        answer = self.begin_join(group, member)
        self._rebalance(group, f"{member.member_id} joins")
        return await self.answered(group, member, answer)

    def begin_join(self, group: Group, member: Member) -> DelayedValue[JoinResult]:
        """Park the answer to a JoinGroup. A pending earlier one is answered REBALANCE_IN_PROGRESS."""
        member.answer_join(JoinResult(ErrorCode.rebalance_in_progress, member.member_id))
        member.join_answer = self._join.try_complete_else_watch(DelayedValue[JoinResult](None))
        self.heartbeat(group, member)
        return member.join_answer

    async def sync(self, group: Group, member: Member, assignments: Mapping[str, bytes]) -> SyncResult:
        """Return the answer to a SyncGroup. A pending earlier one is answered REBALANCE_IN_PROGRESS."""
        member.answer_sync(SyncResult(ErrorCode.rebalance_in_progress))
        answer = member.sync_answer = self._sync.try_complete_else_watch(DelayedValue[SyncResult](None))
        self.record_sync(group, member)
        if member.member_id == group.leader_id:
            self._assign(group, assignments)
        return await self.answered(group, member, answer)

    def record_sync(self, group: Group, member: Member) -> None:
        """Record that the member has sent SyncGroup for the current generation."""
        group.pending_sync.discard(member.member_id)
        self.heartbeat(group, member)
        check_sync(self._sync, group.group_id)

    async def answered(self, group: Group, member: Member, answer: DelayedValue[R]) -> R:
        """Await an answer. When the client disconnects meanwhile, the session timeout of its member begins.

        Kafka does not notice the disconnect. There the member waits on, a new one for at most five minutes.
        """
        try:
            return await answer
        finally:
            if answer.state is OperationState.CANCELLED:
                self.heartbeat(group, member)

    def replace(self, group: Group, member: Member, successor: Member) -> None:
        """Replace a static member's client by a new one. Pending requests of the old one are fenced."""
        member.refuse(ErrorCode.fenced_instance_id)
        group.replace(member, successor)
        check_heartbeat(self._heartbeat, (group.group_id, member.member_id))

    def remove(self, group: Group, member: Member) -> None:
        """Remove a member that has left or expired; the group rebalances."""
        self._drop(group, member)
        self._rebalance(group, f"{member.member_id} is removed")

    def remove_pending_member(self, group: Group, member_id: str) -> None:
        """Stop waiting for a pending member, which has left or has not joined in time."""
        group.pending_members.discard(member_id)
        check_heartbeat(self._heartbeat, (group.group_id, member_id))
        check_join(self._join, group.group_id)
        self._store.remove_if_unused(group)

    def mark_dead(self, group: Group, error: ErrorCode) -> None:
        """End the group on this coordinator. All pending requests are answered with the error."""
        group.state = GroupState.DEAD
        for member in group.members.values():
            member.refuse(error)
        for member_id in [*group.members, *group.pending_members]:
            check_heartbeat(self._heartbeat, (group.group_id, member_id))
        check_join(self._join, group.group_id)
        check_sync(self._sync, group.group_id)

    def _drop(self, group: Group, member: Member) -> None:
        group.remove(member)
        member.refuse(ErrorCode.unknown_member_id)
        check_heartbeat(self._heartbeat, (group.group_id, member.member_id))

    # Joining

    def _rebalance(self, group: Group, reason: str) -> None:
        """Begin a rebalance, in which all members have to rejoin, or see whether one may end."""
        if group.state is GroupState.PREPARING_REBALANCE:
            check_join(self._join, group.group_id)
            return
        logger.info("%r begins a rebalance: %s", group, reason)
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._reset_assignments(group, ErrorCode.rebalance_in_progress)
        first = group.state is GroupState.EMPTY
        group.state = GroupState.PREPARING_REBALANCE
        check_sync(self._sync, group.group_id)
        if first:
            self._await_first_members(group, waited=0)
        else:
            self._await_members(group)

    def _await_members(self, group: Group) -> None:
        join = DelayedJoin(
            group.rebalance_timeout,
            group.group_id,
            lambda: group.has_all_members_joined,
            lambda: self._complete_join(group),
        )
        park_join(self._join, join)

    def _await_first_members(self, group: Group, waited: float) -> None:
        group.new_member_added = False
        delay = min(self._initial_delay, group.rebalance_timeout - waited)

        def joined() -> None:
            may_wait = waited + delay < group.rebalance_timeout and not group.is_dead
            if group.new_member_added and may_wait:
                self._await_first_members(group, waited + delay)
            else:
                self._complete_join(group)

        park_join(self._join, DelayedJoin(delay, group.group_id, lambda: group.is_dead, joined))

    def _complete_join(self, group: Group) -> None:
        """Begin the next generation with the members that have joined, and the static members (KIP-345)."""
        if group.is_dead:
            return
        for member in [*group.members.values()]:
            if member.group_instance_id is None and not member.awaits_join:
                self._drop(group, member)
        if group.members and not group.elect_joined_leader():
            # There are static members alone, and none has rejoined. Wait for them until their sessions end.
            self._await_members(group)
            return
        group.next_generation()
        logger.info("%r: the members have joined", group)
        if group.state is GroupState.EMPTY:
            self._store.append(group, [group_record(group, {})], lambda error: _log_failure(group, error))
            return
        for member in group.members.values():
            if member.answer_join(group.join_result(member)):
                self.heartbeat(group, member)
        sync = DelayedSync(
            group.rebalance_timeout,
            group.group_id,
            lambda: group.has_all_members_synced,
            lambda: self._remove_unsynced(group),
        )
        park_sync(self._sync, sync)

    # Syncing

    def _assign(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """Store the leader's assignments, then answer all members. A member without one gets an empty one."""
        generation_id = group.generation_id
        complete = {member_id: assignments.get(member_id, b"") for member_id in group.members}

        def stored(error: ErrorCode) -> None:
            # Meanwhile a rebalance may have begun, or the group may have another coordinator.
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation_id != generation_id:
                return
            if error is not ErrorCode.none:
                _log_failure(group, error)
                self._reset_assignments(group, error)
                self._rebalance(group, "its assignments are not stored")
                return
            group.state = GroupState.STABLE
            logger.info("%r: the members get their assignments", group)
            for member in group.members.values():
                member.assignment = complete[member.member_id]
                if member.answer_sync(group.sync_result(member)):
                    self.heartbeat(group, member)

        self._store.append(group, [group_record(group, complete)], stored)

    def _reset_assignments(self, group: Group, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.answer_sync(SyncResult(error)):
                self.heartbeat(group, member)

    def _remove_unsynced(self, group: Group) -> None:
        silent = [*group.pending_sync]
        for member_id in silent:
            self._drop(group, group.members[member_id])
        self._rebalance(group, f"{', '.join(silent)} sent no SyncGroup within the rebalance timeout")


def _log_failure(group: Group, error: ErrorCode) -> None:
    if error is not ErrorCode.none:
        logger.warning("the log did not accept the record of %r: %s", group, error.name.upper())
