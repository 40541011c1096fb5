"""A group: its members, its generation, and the states it goes through."""

from collections import Counter
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.member import Member
from examples.broker.group.offsets import GroupOffsets
from examples.broker.group.requests import (
    GroupDescription,
    JoinedMember,
    JoinResult,
    MemberDescription,
    MemberIdentity,
    Protocols,
    SyncResult,
)


class GroupState(Enum):
    """Where a group stands, by the names that Kafka tells administrators."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_PREVIOUS: Final[Mapping[GroupState, Collection[GroupState]]] = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.PREPARING_REBALANCE: {
        GroupState.EMPTY,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    },
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
    GroupState.DEAD: set(GroupState) - {GroupState.DEAD},
}


class Group:
    """Kafka's GroupMetadata: members and generation, with a state that only moves as it may.

    DEAD means that this coordinator has nothing to do with it any more: deleted, or handed over.
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
        """Ids given to newcomers that have not come back with them yet (KIP-394)."""
        self.pending_sync: set[str] = set()
        """Members of this generation that have not sent SyncGroup yet."""
        self.new_member_added = False
        """Whether anybody has joined since the wait for the first members was last extended."""
        self.offsets = GroupOffsets()

    def __repr__(self) -> str:
        return (
            f"<Group {self.group_id!r} {self.state.value} generation {self.generation_id},"
            f" {len(self.members)} members>"
        )

    @property
    def is_dead(self) -> bool:
        return self.state is GroupState.DEAD

    @property
    def is_unused(self) -> bool:
        """Whether it might as well not exist: nothing of it is stored, and nobody is about to join."""
        return self.state is GroupState.EMPTY and not (
            self.generation_id or self.pending_members or self.offsets
        )

    @property
    def can_rebalance(self) -> bool:
        return self.state in _PREVIOUS[GroupState.PREPARING_REBALANCE]

    @property
    def has_all_members_joined(self) -> bool:
        return not self.pending_members and all(member.awaits_join for member in self.members.values())

    @property
    def rebalance_timeout(self) -> float:
        """The time that the slowest member asks for, in seconds; without members nobody is waited for."""
        return max((member.rebalance_timeout for member in self.members.values()), default=0)

    def transition(self, state: GroupState) -> None:
        """Move to the state; ValueError when there is no way there from this one."""
        if self.state not in _PREVIOUS[state]:
            raise ValueError(f"{self!r} cannot become {state.value}")
        self.state = state

    def has(self, member: Member) -> bool:
        return self.members.get(member.member_id) is member

    def member(self, identity: MemberIdentity) -> Member:
        """The member of that identity.

        ApiError UNKNOWN_MEMBER_ID for a stranger, FENCED_INSTANCE_ID when another client has taken over its
        group instance id.
        """
        if identity.group_instance_id is not None:
            current = self.static_members.get(identity.group_instance_id)
            if current is not None and current != identity.member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID, f"{current} is {identity.group_instance_id} now")
        member = self.members.get(identity.member_id)
        if member is None or identity.group_instance_id not in (None, member.group_instance_id):
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"{identity} is not in {self!r}")
        return member

    def check_generation(self, generation_id: int) -> None:
        """ApiError ILLEGAL_GENERATION unless it is this one."""
        if generation_id != self.generation_id:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION, f"{self!r} is not at {generation_id}")

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
        """Put a static member's new client in the place of its old one, leadership included."""
        # In the same place of the order, too.
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
        """Whether a client that speaks these can be in one group with the members there are."""
        if not self.members:
            return bool(protocol_type and protocols)
        common = self._common_protocols()
        return protocol_type == self.protocol_type and any(name in common for name, _ in protocols)

    def select_protocol(self) -> str:
        """Of the protocols that everybody speaks, the one that most prefer; at a tie, the elder members'."""
        common = self._common_protocols()
        return Counter(member.vote(common) for member in self.members.values()).most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """See that the leader is one that has rejoined; False when nobody has."""
        if self.leader_id is not None and self.members[self.leader_id].awaits_join:
            return True
        joined = next((member.member_id for member in self.members.values() if member.awaits_join), None)
        if joined is not None:
            self.leader_id = joined
        return joined is not None

    def next_generation(self) -> None:
        """Everybody who is still a member is of it: COMPLETING_REBALANCE, or EMPTY without anybody."""
        self.generation_id += 1
        self.pending_sync = set(self.members)
        if self.members:
            self.protocol_name = self.select_protocol()
            self.transition(GroupState.COMPLETING_REBALANCE)
        else:
            self.protocol_name = None
            self.transition(GroupState.EMPTY)

    def joined(self, member: Member) -> JoinResult:
        """What the member has joined: the current generation. The leader needs to know everybody."""
        return JoinResult(
            ErrorCode.NONE,
            member.member_id,
            self.generation_id,
            self.protocol_type,
            self.protocol_name,
            self.leader_id or "",
            self.joined_members() if member.member_id == self.leader_id else (),
        )

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """Everybody in the current generation."""
        return tuple(
            JoinedMember(member.member_id, member.group_instance_id, member.metadata(self.protocol_name))
            for member in self.members.values()
        )

    def synced(self, member: Member) -> SyncResult:
        """What the member is to work on in the current generation."""
        return SyncResult(ErrorCode.NONE, self.protocol_type, self.protocol_name, member.assignment)

    def describe(self) -> GroupDescription:
        """As administrators see it."""
        stable = self.state is GroupState.STABLE
        return GroupDescription(
            self.group_id,
            self.state.value,
            self.protocol_type or "",
            (self.protocol_name or "") if stable else "",
            tuple(
                MemberDescription(
                    member.identity,
                    member.client_id,
                    member.client_host,
                    member.metadata(self.protocol_name) if stable else b"",
                    member.assignment if stable else b"",
                )
                for member in self.members.values()
            ),
        )

    def _common_protocols(self) -> set[str]:
        return set.intersection(*({name for name, _ in member.protocols} for member in self.members.values()))
