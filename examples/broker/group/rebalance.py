"""Rebalances: how a group gets to its next generation, with the delayed operations on the way."""

import logging
from collections.abc import Mapping

from examples.broker.errors import ErrorCode
from examples.broker.group.config import GroupConfig
from examples.broker.group.delayed_heartbeat import DelayedHeartbeat, DelayedPendingMember
from examples.broker.group.delayed_join import DelayedJoin, InitialDelayedJoin
from examples.broker.group.delayed_sync import DelayedSync
from examples.broker.group.group import Group, GroupState
from examples.broker.group.group_log import group_record
from examples.broker.group.group_store import GroupStore
from examples.broker.group.member import Member
from examples.broker.group.requests import SyncResult
from purgatory import Purgatory

logger = logging.getLogger(__name__)


class Rebalance:
    """The rebalances of all groups. Joins, syncs and heartbeats each have a purgatory.

    Every member either waits for an answer or has a pending ``DelayedHeartbeat``. The code that answers a
    member schedules its heartbeat.
    """

    def __init__(
        self, store: GroupStore, join: Purgatory, sync: Purgatory, heartbeat: Purgatory, config: GroupConfig
    ) -> None:
        self._store = store
        self._join = join
        self._sync = sync
        self._heartbeat = heartbeat
        self._config = config

    # Heartbeats

    def record_heartbeat(self, group: Group, member: Member) -> None:
        """Complete the member's current heartbeat operation, and schedule the next one."""
        member.heartbeats += 1
        self._check_heartbeat(group, member.member_id)
        heartbeat = DelayedHeartbeat(group, member, self._expire)
        self._heartbeat.try_complete_else_watch(heartbeat, [(group.group_id, member.member_id)])

    def add_pending_member(self, group: Group, member_id: str, session_timeout: float) -> None:
        """Wait for a new client to join with the member id that it was given."""
        group.pending_members.add(member_id)
        pending = DelayedPendingMember(session_timeout, group, member_id, self.remove_pending_member)
        self._heartbeat.try_complete_else_watch(pending, [(group.group_id, member_id)])

    def client_disconnected(self, group: Group, member: Member) -> None:
        """Start the session timeout of a member whose client disconnected while it waited for an answer.

        Kafka does not notice the disconnect. There the member waits on, a new one for at most five minutes.
        """
        if group.has(member) and not group.is_dead and not member.awaits_answer:
            self.record_heartbeat(group, member)

    def _expire(self, group: Group, member: Member) -> None:
        logger.info("%r: %s sent no heartbeat within its session timeout", group, member.member_id)
        self.remove(group, member)

    def _check_heartbeat(self, group: Group, member_id: str) -> None:
        self._heartbeat.check_and_complete((group.group_id, member_id))

    # Membership changes

    def add(self, group: Group, member: Member, protocol_type: str) -> None:
        """Add a new member, which waits for the answer to its join; the group rebalances."""
        group.add(member, protocol_type)
        self.rejoin(group, member)

    def rejoin(self, group: Group, member: Member) -> None:
        """Complete the heartbeat of a member that waits for the answer to its join; the group rebalances."""
        self._check_heartbeat(group, member.member_id)
        if group.can_rebalance:
            self._prepare(group, f"{member.member_id} joins")
        else:
            self._join.check_and_complete(group.group_id)

    def replace(self, group: Group, member: Member, successor: Member) -> None:
        """Replace a static member's client by a new one. Pending requests of the old one are fenced."""
        member.refuse(ErrorCode.fenced_instance_id)
        group.replace(member, successor)
        self._check_heartbeat(group, member.member_id)

    def remove(self, group: Group, member: Member) -> None:
        """Remove a member that has left or expired; the group rebalances."""
        self._drop(group, member)
        if group.can_rebalance:
            self._prepare(group, f"{member.member_id} is removed")
        else:
            self._join.check_and_complete(group.group_id)

    def remove_pending_member(self, group: Group, member_id: str) -> None:
        """Stop waiting for a pending member, which has left or has not joined in time."""
        group.pending_members.discard(member_id)
        self._check_heartbeat(group, member_id)
        self._join.check_and_complete(group.group_id)
        self._store.remove_if_unused(group)

    def mark_dead(self, group: Group, error: ErrorCode) -> None:
        """End the group on this coordinator. All pending requests are answered with the error."""
        group.transition(GroupState.DEAD)
        for member in group.members.values():
            member.refuse(error)
        for member_id in [*group.members, *group.pending_members]:
            self._check_heartbeat(group, member_id)
        self._join.check_and_complete(group.group_id)
        self._sync.check_and_complete(group.group_id)

    def _drop(self, group: Group, member: Member) -> None:
        group.remove(member)
        member.refuse(ErrorCode.unknown_member_id)
        self._check_heartbeat(group, member.member_id)

    # Joining

    def _prepare(self, group: Group, reason: str) -> None:
        """Begin a rebalance: all members have to rejoin."""
        logger.info("%r begins a rebalance: %s", group, reason)
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._reset_assignments(group, ErrorCode.rebalance_in_progress)
        first = group.state is GroupState.EMPTY
        group.transition(GroupState.PREPARING_REBALANCE)
        self._sync.check_and_complete(group.group_id)
        if first:
            self._await_first_members(group, waited=0)
        else:
            self._await_members(group)

    def _await_members(self, group: Group) -> None:
        delayed = DelayedJoin(group.rebalance_timeout, group, self._complete_join)
        self._join.try_complete_else_watch(delayed, [group.group_id])

    def _await_first_members(self, group: Group, waited: float) -> None:
        group.new_member_added = False
        delay = min(self._config.group_initial_rebalance_delay, group.rebalance_timeout - waited)

        def joined(group: Group) -> None:
            if group.new_member_added and waited + delay < group.rebalance_timeout:
                self._await_first_members(group, waited + delay)
            else:
                self._complete_join(group)

        self._join.try_complete_else_watch(InitialDelayedJoin(delay, group, joined), [group.group_id])

    def _complete_join(self, group: Group) -> None:
        """Begin the next generation with the members that have joined, and the static members (KIP-345)."""
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
                self.record_heartbeat(group, member)
        delayed = DelayedSync(group.rebalance_timeout, group, self._remove_unsynced)
        self._sync.try_complete_else_watch(delayed, [group.group_id])

    # Syncing

    def record_sync(self, group: Group, member: Member) -> None:
        """Record that the member has sent SyncGroup for the current generation."""
        group.pending_sync.discard(member.member_id)
        self._check_heartbeat(group, member.member_id)
        self._sync.check_and_complete(group.group_id)

    def assign(self, group: Group, assignments: Mapping[str, bytes]) -> None:
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
                self._prepare(group, "its assignments are not stored")
                return
            group.transition(GroupState.STABLE)
            logger.info("%r: the members get their assignments", group)
            for member in group.members.values():
                member.assignment = complete[member.member_id]
                if member.answer_sync(group.sync_result(member)):
                    self.record_heartbeat(group, member)

        self._store.append(group, [group_record(group, complete)], stored)

    def _reset_assignments(self, group: Group, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.answer_sync(SyncResult(error)):
                self.record_heartbeat(group, member)

    def _remove_unsynced(self, group: Group) -> None:
        silent = [*group.pending_sync]
        for member_id in silent:
            self._drop(group, group.members[member_id])
        self._prepare(group, f"{', '.join(silent)} sent no SyncGroup within the rebalance timeout")


def _log_failure(group: Group, error: ErrorCode) -> None:
    if error is not ErrorCode.none:
        logger.warning("the log did not accept the record of %r: %s", group, error.name.upper())
