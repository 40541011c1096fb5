"""How a group gets from one generation to the next, and the delayed operations that take it there."""

import logging
from collections.abc import Mapping

from examples.broker.errors import ErrorCode
from examples.broker.group.config import GroupConfig
from examples.broker.group.delayed_heartbeat import DelayedHeartbeat, DelayedNewcomer
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
    """Joins, syncs and heartbeats of all groups, each kind in its own purgatory.

    Every member either waits for an answer or has a heartbeat to send; whoever answers it schedules that.
    """

    def __init__(
        self, store: GroupStore, join: Purgatory, sync: Purgatory, heartbeat: Purgatory, config: GroupConfig
    ) -> None:
        self._store = store
        self._join = join
        self._sync = sync
        self._heartbeat = heartbeat
        self._config = config

    # Signs of life

    def beat(self, group: Group, member: Member) -> None:
        """The member is alive: complete the current expiration and schedule the next."""
        member.beats += 1
        self._check_heartbeat(group, member.member_id)
        heartbeat = DelayedHeartbeat(group, member, self._expire)
        self._heartbeat.try_complete_else_watch(heartbeat, [(group.group_id, member.member_id)])

    def expect(self, group: Group, member_id: str, session_timeout: float) -> None:
        """A newcomer has been given this id: wait for it to come back with it."""
        group.pending_members.add(member_id)
        newcomer = DelayedNewcomer(session_timeout, group, member_id, self.forget_newcomer)
        self._heartbeat.try_complete_else_watch(newcomer, [(group.group_id, member_id)])

    def client_vanished(self, group: Group, member: Member) -> None:
        """A client went away while it waited: its member stays until its session times out.

        Kafka, which does not notice, has the member wait on, and newcomers for five minutes at most.
        """
        if group.has(member) and not group.is_dead and not member.awaits_answer:
            self.beat(group, member)

    def _expire(self, group: Group, member: Member) -> None:
        logger.info("%r: %s was not heard of for its session timeout", group, member.member_id)
        self.remove(group, member)

    def _check_heartbeat(self, group: Group, member_id: str) -> None:
        self._heartbeat.check_and_complete((group.group_id, member_id))

    # Who comes and goes

    def add(self, group: Group, member: Member, protocol_type: str) -> None:
        """A newcomer, which awaits its join: the group rebalances."""
        group.add(member, protocol_type)
        self.rejoin(group, member)

    def rejoin(self, group: Group, member: Member) -> None:
        """A member awaits its join: its heartbeats rest, and the group rebalances."""
        self._check_heartbeat(group, member.member_id)
        if group.can_rebalance:
            self._prepare(group)
        else:
            self._join.check_and_complete(group.group_id)

    def replace(self, group: Group, member: Member, successor: Member) -> None:
        """A static member has come back as a new client; the old one is told, should it still wait."""
        member.refuse(ErrorCode.FENCED_INSTANCE_ID)
        group.replace(member, successor)
        self._check_heartbeat(group, member.member_id)

    def remove(self, group: Group, member: Member) -> None:
        """A member has left or expired: the group goes on without it."""
        self._drop(group, member)
        if group.can_rebalance:
            self._prepare(group)
        else:
            self._join.check_and_complete(group.group_id)

    def forget_newcomer(self, group: Group, member_id: str) -> None:
        """One who was given an id has left or not come back with it: nobody waits for it any more."""
        group.pending_members.discard(member_id)
        self._check_heartbeat(group, member_id)
        self._join.check_and_complete(group.group_id)
        self._store.forget_if_unused(group)

    def bury(self, group: Group, error: ErrorCode) -> None:
        """The group has nothing to do with this coordinator any more: whoever waits is told so now."""
        group.transition(GroupState.DEAD)
        for member in group.members.values():
            member.refuse(error)
        for member_id in [*group.members, *group.pending_members]:
            self._check_heartbeat(group, member_id)
        self._join.check_and_complete(group.group_id)
        self._sync.check_and_complete(group.group_id)

    def _drop(self, group: Group, member: Member) -> None:
        group.remove(member)
        member.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        self._check_heartbeat(group, member.member_id)

    # Joining

    def _prepare(self, group: Group) -> None:
        """Begin a rebalance: from now on everybody has to join again."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
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
        """The next generation is of those who have joined, and of the static members (KIP-345)."""
        for member in [*group.members.values()]:
            if member.group_instance_id is None and not member.awaits_join:
                self._drop(group, member)
        if group.members and not group.elect_joined_leader():
            # Static members alone, and none of them has come yet: until they do, or their sessions time out.
            self._await_members(group)
            return
        group.next_generation()
        if group.state is GroupState.EMPTY:
            self._store.append(group, [group_record(group, {})], lambda error: _log_failure(group, error))
            return
        for member in group.members.values():
            if member.answer_join(group.joined(member)):
                self.beat(group, member)
        delayed = DelayedSync(group.rebalance_timeout, group, self._remove_late)
        self._sync.try_complete_else_watch(delayed, [group.group_id])

    # Syncing

    def synced(self, group: Group, member: Member) -> None:
        """The member has sent SyncGroup for the current generation."""
        group.pending_sync.discard(member.member_id)
        self._check_heartbeat(group, member.member_id)
        self._sync.check_and_complete(group.group_id)

    def assign(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """The leader has assigned: once the log has that, everybody is told; who is left out gets nothing."""
        generation_id = group.generation_id
        complete = {member_id: assignments.get(member_id, b"") for member_id in group.members}

        def stored(error: ErrorCode) -> None:
            # A rebalance may have begun, or the group may have been handed over, in the meantime.
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation_id != generation_id:
                return
            if error is not ErrorCode.NONE:
                _log_failure(group, error)
                self._reset_assignments(group, error)
                self._prepare(group)
                return
            group.transition(GroupState.STABLE)
            for member in group.members.values():
                member.assignment = complete[member.member_id]
                if member.answer_sync(group.synced(member)):
                    self.beat(group, member)

        self._store.append(group, [group_record(group, complete)], stored)

    def _reset_assignments(self, group: Group, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.answer_sync(SyncResult(error)):
                self.beat(group, member)

    def _remove_late(self, group: Group) -> None:
        for member_id in [*group.pending_sync]:
            logger.info("%r: %s sent no SyncGroup within the rebalance timeout", group, member_id)
            self._drop(group, group.members[member_id])
        self._prepare(group)


def _log_failure(group: Group, error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        logger.warning("%r could not be stored: %s", group, error.name)
