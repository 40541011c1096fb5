"""What members ask of their coordinator, and what they are told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from examples.broker.errors import ErrorCode
from examples.broker.group.offsets import CommittedOffset
from examples.broker.topic_partition import TopicPartition

UNKNOWN_MEMBER: Final = ""
NO_GENERATION: Final = -1

Protocols = tuple[tuple[str, bytes], ...]
"""The assignment protocols of a member with its metadata for each, the preferred one first."""


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """Who speaks: by the id from the coordinator, and a static member by its own, too (KIP-345)."""

    member_id: str = UNKNOWN_MEMBER
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A member wants in, or back in. Times are in seconds.

    ``requires_known_member_id``: a newcomer is given an id first, and must come back with it (KIP-394).
    ``supports_skip_assignment``: it understands that it leads without having to assign (KIP-814).
    """

    group_id: str
    member: MemberIdentity
    protocol_type: str
    protocols: Protocols
    session_timeout: float
    rebalance_timeout: float
    client_id: str = ""
    client_host: str = ""
    requires_known_member_id: bool = True
    supports_skip_assignment: bool = True


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """One member as the leader is told of it, with its metadata for the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The generation that a member has joined; only its leader is told who else is in it."""

    error: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """A member of a generation asks for its assignment; the leader brings everybody's."""

    group_id: str
    generation_id: int
    member: MemberIdentity
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a member is to work on."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """Offsets to remember; a client outside group management gives no generation and no member."""

    group_id: str
    offsets: Mapping[TopicPartition, CommittedOffset]
    generation_id: int = NO_GENERATION
    member: MemberIdentity = MemberIdentity()


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member as administrators see it; metadata and assignment only while the group is stable."""

    identity: MemberIdentity
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group as administrators see it; ``state`` is Kafka's name for it."""

    group_id: str
    state: str
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[MemberDescription, ...] = ()
