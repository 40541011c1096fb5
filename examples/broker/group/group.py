"""A consumer group: its members, its generation and its state."""

from collections import Counter
from enum import Enum
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.member import Member
from examples.broker.group.offsets import GroupOffsets
from examples.broker.group.requests import (
    JoinedMember,
    JoinResult,
    MemberIdentity,
    Protocols,
    SyncResult,
)

CONSUMER_PROTOCOL: Final = "consumer"
"""The protocol type of consumers. Other clients, such as Kafka Connect, have groups without subscriptions."""


class GroupState(Enum):
    """The state of a group, with the names that Kafka shows to administrators."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Group:
    """The members, the generation and the state of a group (Kafka's GroupMetadata).

    DEAD means that this coordinator no longer has the group: it was deleted or has another coordinator.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending_members: set[str] = set()
        """Member ids of new clients that have not joined with them yet (KIP-394)."""
        self.pending_sync: set[str] = set()
        """Members of this generation that have not sent SyncGroup yet."""
        self.new_member_added = False
        """Whether a member has joined since the initial rebalance delay was last extended."""
        self.offsets = GroupOffsets()

    def __repr__(self) -> str:
        return (
            f"<Group {self.group_id!r} {self.state.value} generation {self.generation_id},"
            f" {len(self.members)} members>"
        )

    def __contains__(self, member_id: object) -> bool:
        """Whether a member has this id, or a client that is about to join with it."""
        return not self.is_dead and (member_id in self.members or member_id in self.pending_members)

    @property
    def is_dead(self) -> bool:
        return self.state is GroupState.DEAD

    @property
    def is_unused(self) -> bool:
        """Whether the group has nothing stored and no member that is about to join."""
        return self.state is GroupState.EMPTY and not (
            self.generation_id or self.pending_members or self.offsets
        )

    @property
    def assigned_protocol(self) -> str | None:
        """The protocol of the assignments. Administrators see none while the group rebalances."""
        return self.protocol_name if self.state is GroupState.STABLE else None

    @property
    def has_all_members_joined(self) -> bool:
        """Whether a rebalance has nobody to wait for any more."""
        waits = self.pending_members or not all(member.awaits_join for member in self.members.values())
        return self.is_dead or not waits

    @property
    def has_all_members_synced(self) -> bool:
        """Whether all members of the generation have sent SyncGroup, or it is over."""
        goes_on = self.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        return not (goes_on and self.pending_sync)

    @property
    def rebalance_timeout(self) -> float:
        """The longest rebalance timeout of a member, in seconds; 0 without members."""
        return max((member.rebalance_timeout for member in self.members.values()), default=0)

    def member(self, identity: MemberIdentity) -> Member:
        """Return the member with that identity.

        Raises ApiError UNKNOWN_MEMBER_ID when there is none, and FENCED_INSTANCE_ID when another client has
        taken over its group instance id.
        """
        if identity.group_instance_id is not None:
            current = self.static_members.get(identity.group_instance_id)
            if current is not None and current != identity.member_id:
                raise ApiError(
                    ErrorCode.fenced_instance_id,
                    f"member {current} has the group instance id {identity.group_instance_id} now",
                )
        member = self.members.get(identity.member_id)
        if member is None or identity.group_instance_id not in (None, member.group_instance_id):
            raise ApiError(ErrorCode.unknown_member_id, f"{identity} is not a member of {self!r}")
        return member

    def check_generation(self, generation_id: int) -> None:
        """Raise ApiError ILLEGAL_GENERATION unless it is the current generation."""
        if generation_id != self.generation_id:
            raise ApiError(ErrorCode.illegal_generation, f"{self!r} is not in generation {generation_id}")

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self.pending_members.discard(member.member_id)
        self.new_member_added = True

    def remove(self, member: Member) -> None:
        del self.members[member.member_id]
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        self.pending_sync.discard(member.member_id)
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def replace(self, member: Member, successor: Member) -> None:
        """Replace a static member's old client by its new one, which also takes over the leadership."""
        # The new client has the same place in the order of the members, too.
        self.members = {
            entry.member_id: entry
            for entry in (successor if entry is member else entry for entry in self.members.values())
        }
        if successor.group_instance_id is not None:
            self.static_members[successor.group_instance_id] = successor.member_id
        if member.member_id in self.pending_sync:
            self.pending_sync.remove(member.member_id)
            self.pending_sync.add(successor.member_id)
        if self.leader_id == member.member_id:
            self.leader_id = successor.member_id

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a client with these protocols can join the current members."""
        if not self.members:
            return bool(protocol_type and protocols)
        common = self._common_protocols()
        return protocol_type == self.protocol_type and any(name in common for name, _ in protocols)

    def select_protocol(self) -> str:
        """Return the common protocol that most members prefer; in a tie, that of the earlier members."""
        common = self._common_protocols()
        return Counter(member.vote(common) for member in self.members.values()).most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader has rejoined, by electing another one; False when no member has."""
        if self.leader_id is not None and self.members[self.leader_id].awaits_join:
            return True
        joined = next((member.member_id for member in self.members.values() if member.awaits_join), None)
        if joined is not None:
            self.leader_id = joined
        return joined is not None

    def next_generation(self) -> None:
        """Begin the next generation with the current members; the group is EMPTY without any."""
        self.generation_id += 1
        self.pending_sync = set(self.members)
        if self.members:
            self.protocol_name = self.select_protocol()
            self.state = GroupState.COMPLETING_REBALANCE
        else:
            self.protocol_name = None
            self.state = GroupState.EMPTY

    def join_result(self, member: Member) -> JoinResult:
        """Return the answer to a JoinGroup in the current generation. The leader's has all members."""
        leads = member.member_id == self.leader_id
        return JoinResult(
            ErrorCode.none,
            member.member_id,
            self.generation_id,
            self.protocol_type,
            self.protocol_name,
            self.leader_id or "",
            tuple(
                JoinedMember(entry.member_id, entry.group_instance_id, entry.metadata(self.protocol_name))
                for entry in self.members.values()
                if leads
            ),
        )

    def sync_result(self, member: Member) -> SyncResult:
        """Return the answer to a SyncGroup: the member's assignment in the current generation."""
        return SyncResult(ErrorCode.none, self.protocol_type, self.protocol_name, member.assignment)

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics that members subscribe to; None if that is unknown, as while it rebalances.

        Raises ApiError NON_EMPTY_GROUP when the members are no consumers.
        """
        if self.state is GroupState.EMPTY:
            return frozenset()
        if self.protocol_type != CONSUMER_PROTOCOL:
            raise ApiError(ErrorCode.non_empty_group, f"{self!r} has members that are no consumers")
        if self.state is GroupState.PREPARING_REBALANCE:
            return None
        try:
            subscriptions = [member.subscription(self.protocol_name) for member in self.members.values()]
        except ValueError:
            return None
        return frozenset().union(*subscriptions)

    def _common_protocols(self) -> set[str]:
        return set.intersection(*({name for name, _ in member.protocols} for member in self.members.values()))
