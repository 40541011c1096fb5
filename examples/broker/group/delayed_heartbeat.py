"""The waits for a sign of life."""

from collections.abc import Callable

from examples.broker.group.group import Group
from examples.broker.group.member import Member
from purgatory import DelayedOperation


class DelayedHeartbeat(DelayedOperation[None]):
    """Complete when the member's next beat comes; at its session timeout it is ``expired``.

    After Kafka's DelayedHeartbeat: each beat completes the current operation and schedules the next. There is
    none for a member that awaits the answer to a JoinGroup or SyncGroup, which is why those complete it, too;
    nor for one that has left, nor in a dead group. Keyed by (group id, member id).

    Kafka tells the beat by a flag that it raises for one check; a check within a hook comes later than that,
    so here the beats are counted.
    """

    __slots__ = ("_beats", "_expired", "_group", "_member")

    def __init__(self, group: Group, member: Member, expired: Callable[[Group, Member], None]) -> None:
        super().__init__(member.session_timeout)
        self._group = group
        self._member = member
        self._beats = member.beats
        self._expired = expired

    def try_complete(self) -> bool:
        return self._is_satisfied() and self.force_complete()

    def on_expiration(self) -> None:
        # What expired in the same tick may have satisfied it since.
        if not self._is_satisfied():
            self._expired(self._group, self._member)

    def _is_satisfied(self) -> bool:
        member = self._member
        return (
            self._group.is_dead
            or not self._group.has(member)
            or member.awaits_answer
            or member.beats != self._beats
        )


class DelayedNewcomer(DelayedOperation[None]):
    """Complete when one who was given a member id has joined with it, or left; else ``expired`` (KIP-394).

    Waits in the same purgatory, and under the same key, as the heartbeats of the member it may become.
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
