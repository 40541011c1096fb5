"""The delayed operations that end a session without heartbeats."""

from collections.abc import Callable

from examples.broker.group.group import Group
from examples.broker.group.member import Member
from purgatory import DelayedOperation


class DelayedHeartbeat(DelayedOperation[None]):
    """Completes when the member's next heartbeat comes; at the session timeout it calls ``expired``.

    As with Kafka's DelayedHeartbeat, each heartbeat completes the current operation and schedules the next
    one. A member that waits for the answer to a JoinGroup or SyncGroup has no such operation, so these
    requests complete it, too, as does leaving the group or the end of the group. The key is (group id, member
    id).

    Kafka marks a heartbeat by a flag that is set during one check. A check within a hook runs later than
    that, so this class compares the number of heartbeats.
    """

    __slots__ = ("_expired", "_group", "_heartbeats", "_member")

    def __init__(self, group: Group, member: Member, expired: Callable[[Group, Member], None]) -> None:
        super().__init__(member.session_timeout)
        self._group = group
        self._member = member
        self._heartbeats = member.heartbeats
        self._expired = expired

    def try_complete(self) -> bool:
        return self._is_satisfied() and self.force_complete()

    def on_expiration(self) -> None:
        # An operation that expired in the same tick may have satisfied this one since.
        if not self._is_satisfied():
            self._expired(self._group, self._member)

    def _is_satisfied(self) -> bool:
        member = self._member
        return (
            self._group.is_dead
            or not self._group.has(member)
            or member.awaits_answer
            or member.heartbeats != self._heartbeats
        )


class DelayedPendingMember(DelayedOperation[None]):
    """Completes when a pending member has joined with its new member id, or left; else calls ``expired``.

    A pending member has a member id and must join again with it (KIP-394). The operation waits in the same
    purgatory, with the same key, as the heartbeats of the later member.
    """

    __slots__ = ("_expired", "_group", "_member_id")

    def __init__(
        self, timeout: float, group: Group, member_id: str, expired: Callable[[Group, str], None]
    ) -> None:
        super().__init__(timeout)
        self._group = group
        self._member_id = member_id
        self._expired = expired

    def try_complete(self) -> bool:
        return self._is_satisfied() and self.force_complete()

    def on_expiration(self) -> None:
        if not self._is_satisfied():
            self._expired(self._group, self._member_id)

    def _is_satisfied(self) -> bool:
        return self._group.is_dead or self._member_id not in self._group.pending_members
