"""One member of a group, and the responses that its client waits for."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TypeVar

from examples.broker.errors import ErrorCode
from examples.broker.group.requests import (
    JoinRequest,
    JoinResult,
    MemberIdentity,
    Protocols,
    SyncResult,
)

R = TypeVar("R")


@dataclass(slots=True, eq=False)
class Member:
    """A member of a group (Kafka's MemberMetadata). Times are in seconds.

    The answers to its JoinGroup and SyncGroup are futures of the member. The delayed operations belong to the
    group, and outlive a client that disconnects.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: float
    rebalance_timeout: float
    protocols: Protocols
    assignment: bytes = b""
    heartbeats: int = 0
    """The number of heartbeats, by which a DelayedHeartbeat knows that the next one came."""
    _join_answer: asyncio.Future[JoinResult] | None = None
    _sync_answer: asyncio.Future[SyncResult] | None = None

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
        return replace(self, member_id=member_id, heartbeats=0, _join_answer=None, _sync_answer=None)

    @property
    def identity(self) -> MemberIdentity:
        return MemberIdentity(self.member_id, self.group_instance_id)

    @property
    def awaits_join(self) -> bool:
        return self._join_answer is not None and not self._join_answer.done()

    @property
    def awaits_sync(self) -> bool:
        return self._sync_answer is not None and not self._sync_answer.done()

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

    def await_join(self) -> asyncio.Future[JoinResult]:
        """Return the answer to a new JoinGroup. A pending earlier one is answered REBALANCE_IN_PROGRESS."""
        self.answer_join(JoinResult(ErrorCode.rebalance_in_progress, self.member_id))
        self._join_answer = asyncio.get_running_loop().create_future()
        return self._join_answer

    def await_sync(self) -> asyncio.Future[SyncResult]:
        """Return the answer to a new SyncGroup. A pending earlier one is answered REBALANCE_IN_PROGRESS."""
        self.answer_sync(SyncResult(ErrorCode.rebalance_in_progress))
        self._sync_answer = asyncio.get_running_loop().create_future()
        return self._sync_answer

    def answer_join(self, result: JoinResult) -> bool:
        """Answer the pending JoinGroup; False when there is none, or its client has disconnected."""
        return _resolve(self._join_answer, result)

    def answer_sync(self, result: SyncResult) -> bool:
        """Answer the pending SyncGroup; False when there is none, or its client has disconnected."""
        return _resolve(self._sync_answer, result)

    def refuse(self, error: ErrorCode) -> None:
        """Answer its pending requests with an error."""
        self.answer_join(JoinResult(error, self.member_id))
        self.answer_sync(SyncResult(error))

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return its metadata for that protocol; empty for a protocol that it does not support."""
        return dict(self.protocols).get(protocol_name, b"") if protocol_name is not None else b""

    def vote(self, candidates: Collection[str]) -> str:
        """Return the candidate that it prefers, among protocols that all members support."""
        return next(name for name, _ in self.protocols if name in candidates)


def _resolve(answer: asyncio.Future[R] | None, result: R) -> bool:
    if answer is None or answer.done():
        return False
    answer.set_result(result)
    return True
