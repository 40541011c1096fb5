"""One member of a group, and the answers it waits for."""

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
    """A client with its place in the group (Kafka's MemberMetadata). Times are in seconds.

    The answers to its JoinGroup and SyncGroup are futures: they are the member's, while the delayed
    operations are the group's, and outlive any one client that has gone.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: float
    rebalance_timeout: float
    protocols: Protocols
    assignment: bytes = b""
    beats: int = 0
    """Signs of life so far: what tells a DelayedHeartbeat that the beat it waits for came."""
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
        """Its successor under another id, with its assignment; nobody waits for that one's answers yet."""
        return replace(self, member_id=member_id, beats=0, _join_answer=None, _sync_answer=None)

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
        """Whether it cannot be expected to send heartbeats, as its client waits for us."""
        return self.awaits_join or self.awaits_sync

    def update(self, request: JoinRequest) -> None:
        """Take over what it says of itself when it joins again."""
        self.client_id = request.client_id
        self.client_host = request.client_host
        self.session_timeout = request.session_timeout
        self.rebalance_timeout = request.rebalance_timeout
        self.protocols = request.protocols

    def await_join(self) -> asyncio.Future[JoinResult]:
        """The answer to a JoinGroup. An earlier one that still waits is told to try again."""
        self.answer_join(JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, self.member_id))
        self._join_answer = asyncio.get_running_loop().create_future()
        return self._join_answer

    def await_sync(self) -> asyncio.Future[SyncResult]:
        """The answer to a SyncGroup. An earlier one that still waits is told to try again."""
        self.answer_sync(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        self._sync_answer = asyncio.get_running_loop().create_future()
        return self._sync_answer

    def answer_join(self, result: JoinResult) -> bool:
        """Answer the JoinGroup that waits; False when there is none, or its client has gone."""
        return _resolve(self._join_answer, result)

    def answer_sync(self, result: SyncResult) -> bool:
        """Answer the SyncGroup that waits; False when there is none, or its client has gone."""
        return _resolve(self._sync_answer, result)

    def refuse(self, error: ErrorCode) -> None:
        """Answer whatever it waits for with an error."""
        self.answer_join(JoinResult(error, self.member_id))
        self.answer_sync(SyncResult(error))

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it says of itself in that protocol; nothing in one that it does not speak."""
        return dict(self.protocols).get(protocol_name, b"") if protocol_name is not None else b""

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate that it likes best, of candidates that everybody speaks."""
        return next(name for name, _ in self.protocols if name in candidates)


def _resolve(answer: asyncio.Future[R] | None, result: R) -> bool:
    if answer is None or answer.done():
        return False
    answer.set_result(result)
    return True
