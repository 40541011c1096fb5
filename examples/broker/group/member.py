"""One member of a group, and the answers that its client waits for."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from struct import Struct
from struct import error as StructError
from typing import Final

from examples.broker.errors import ErrorCode
from examples.broker.group.requests import JoinRequest, JoinResult, MemberIdentity, Protocols, SyncResult
from purgatory import DelayedValue

# A consumer's metadata begin with a version and the number of topics (ConsumerProtocolSubscription).
_VERSION_AND_COUNT: Final = Struct(">hi")
_LENGTH: Final = Struct(">h")


@dataclass(slots=True, eq=False)
class Member:
    """A member of a group (Kafka's MemberMetadata). Times are in seconds.

    Its JoinGroup and its SyncGroup each await an operation, which completes with the answer. The operations
    on which the group waits outlive a client that disconnects.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: float
    rebalance_timeout: float
    protocols: Protocols
    assignment: bytes = b""
    join_answer: DelayedValue[JoinResult] | None = None
    sync_answer: DelayedValue[SyncResult] | None = None

    @classmethod
    def of(cls, member_id: str, request: JoinRequest) -> "Member":
        return cls(
            member_id,
            request.member.group_instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout,
            request.rebalance_timeout,
            request.protocols,
        )

    def renamed(self, member_id: str) -> "Member":
        """Return its successor with another id and the same assignment, and without pending answers."""
        return replace(self, member_id=member_id, join_answer=None, sync_answer=None)

    @property
    def identity(self) -> MemberIdentity:
        return MemberIdentity(self.member_id, self.group_instance_id)

    @property
    def awaits_join(self) -> bool:
        return self.join_answer is not None and not self.join_answer.done

    @property
    def awaits_sync(self) -> bool:
        return self.sync_answer is not None and not self.sync_answer.done

    @property
    def awaits_answer(self) -> bool:
        """Whether its client waits for an answer, so that it sends no heartbeats."""
        return self.awaits_join or self.awaits_sync

    def update(self, request: JoinRequest) -> None:
        """Update the member from the request with which it rejoins."""
        self.client_id = request.client_id
        self.client_host = request.client_host
        self.session_timeout = request.session_timeout
        self.rebalance_timeout = request.rebalance_timeout
        self.protocols = request.protocols

    def answer_join(self, result: JoinResult) -> bool:
        """Answer the pending JoinGroup; False when there is none, or its client has disconnected."""
        return self.join_answer is not None and self.join_answer.complete(result)

    def answer_sync(self, result: SyncResult) -> bool:
        """Answer the pending SyncGroup; False when there is none, or its client has disconnected."""
        return self.sync_answer is not None and self.sync_answer.complete(result)

    def refuse(self, error: ErrorCode) -> None:
        """Answer its pending requests with an error."""
        self.answer_join(JoinResult(error, self.member_id))
        self.answer_sync(SyncResult(error))

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return its metadata for that protocol; empty for a protocol that it does not support."""
        return dict(self.protocols).get(protocol_name, b"") if protocol_name is not None else b""

    def subscription(self, protocol_name: str | None) -> set[str]:
        """Return the topics in a consumer's metadata. Raises ValueError when they are unreadable."""
        metadata = self.metadata(protocol_name)
        try:
            _, count = _VERSION_AND_COUNT.unpack_from(metadata)
            position = _VERSION_AND_COUNT.size
            topics = set()
            for _ in range(count):
                (length,) = _LENGTH.unpack_from(metadata, position)
                position += _LENGTH.size
                topics.add(metadata[position : position + length].decode())
                position += length
        except StructError as error:
            raise ValueError(f"unreadable subscription: {error}") from error
        return topics

    def vote(self, candidates: Collection[str]) -> str:
        """Return the candidate that it prefers, among protocols that all members support."""
        return next(name for name, _ in self.protocols if name in candidates)
