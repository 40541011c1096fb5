"""The requests of group members to their coordinator, and its answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from examples.broker.errors import ErrorCode
from examples.broker.group.offsets import CommittedOffset
from examples.broker.topic_partition import TopicPartition

UNKNOWN_MEMBER: Final = ""
NO_GENERATION: Final = -1

Protocols = tuple[tuple[str, bytes], ...]
"""The assignment protocols of a member with its metadata for each. The preferred one is first."""


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """A member's id from the coordinator, and the group instance id of a static member (KIP-345)."""

    member_id: str = UNKNOWN_MEMBER
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """The request to join or rejoin a group. Times are in seconds.

    ``requires_known_member_id``: a new client first gets a member id, and must join again with it (KIP-394).
    ``supports_skip_assignment``: the client understands that it leads but must not assign (KIP-814).
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
    """One member in the leader's answer, with its metadata for the selected protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The answer to a join: the generation. Only the leader's answer has the ``members``."""

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
    """The request of a member for its assignment. The leader's request has all assignments."""

    group_id: str
    generation_id: int
    member: MemberIdentity
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The answer to a sync: the member's assignment."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """Offsets to commit. A client without group membership gives no generation and no member."""

    group_id: str
    offsets: Mapping[TopicPartition, CommittedOffset]
    generation_id: int = NO_GENERATION
    member: MemberIdentity = MemberIdentity()
