"""A coordinator under test, the log it writes to, and clients that do what consumers do."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import TypeVar

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.group_log import Record
from examples.broker.group.offsets import CommittedOffset
from examples.broker.group.requests import (
    CommitRequest,
    JoinRequest,
    JoinResult,
    MemberIdentity,
    Protocols,
    SyncRequest,
    SyncResult,
)
from examples.broker.topic_partition import TopicPartition

R = TypeVar("R")

GROUP = "readers"
RANGE: Protocols = (("range", b"subscription"),)
SESSION, REBALANCE, INITIAL_DELAY = 10.0, 60.0, 3.0


class MemoryLog:
    """A log of every partition in memory, which may be told to fail, or to keep its writers waiting."""

    def __init__(self) -> None:
        self.records: defaultdict[int, list[Record]] = defaultdict(list)
        self.error = ErrorCode.NONE
        self.appended = asyncio.Event()
        self.appended.set()

    async def append(self, partition: int, records: Sequence[Record]) -> ErrorCode:
        error = self.error
        self.records[partition].extend(records)
        await self.appended.wait()
        return error

    def read(self, partition: int) -> Iterable[Record]:
        return list(self.records[partition])


class Client:
    """One consumer. It remembers what its last join gave it."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        name: str = "client",
        *,
        instance: str | None = None,
        protocols: Protocols = RANGE,
        session: float = SESSION,
        rebalance: float = REBALANCE,
    ) -> None:
        self.coordinator = coordinator
        self.name = name
        self.instance = instance
        self.protocols = protocols
        self.session = session
        self.rebalance = rebalance
        self.member_id = ""
        self.generation_id = -1
        self.joined = JoinResult(ErrorCode.NONE, "")

    @property
    def identity(self) -> MemberIdentity:
        return MemberIdentity(self.member_id, self.instance)

    @property
    def leads(self) -> bool:
        return bool(self.joined.members)

    async def join_once(self, **changes: object) -> JoinResult:
        """One JoinGroup, whatever comes of it."""
        fields: dict[str, object] = {
            "group_id": GROUP,
            "member": self.identity,
            "protocol_type": "consumer",
            "protocols": self.protocols,
            "session_timeout": self.session,
            "rebalance_timeout": self.rebalance,
            "client_id": self.name,
        }
        return await self.coordinator.join(JoinRequest(**{**fields, **changes}))  # type: ignore[arg-type]  # by name

    async def join(self) -> JoinResult:
        """JoinGroup as a consumer does it: newcomers come twice."""
        result = await self.join_once()
        if result.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = result.member_id
            result = await self.join_once()
        if result.error is ErrorCode.NONE:
            self.member_id, self.generation_id, self.joined = result.member_id, result.generation_id, result
        return result

    async def sync(self, assignments: Mapping[str, bytes] | None = None) -> SyncResult:
        """SyncGroup; the leader assigns everybody their own member id unless told otherwise."""
        if assignments is None:
            assignments = {member.member_id: member.member_id.encode() for member in self.joined.members}
        return await self.sync_once(assignments=assignments)

    async def sync_once(self, **changes: object) -> SyncResult:
        """One SyncGroup, without assignments unless told otherwise."""
        fields: dict[str, object] = {
            "group_id": GROUP,
            "generation_id": self.generation_id,
            "member": self.identity,
        }
        return await self.coordinator.sync(SyncRequest(**{**fields, **changes}))  # type: ignore[arg-type]  # by name

    async def join_and_sync(self) -> SyncResult:
        """As a consumer does it: again, as long as the group goes on rebalancing."""
        while True:
            joined = await self.join()
            assert joined.error is ErrorCode.NONE, joined
            synced = await self.sync()
            if synced.error is not ErrorCode.REBALANCE_IN_PROGRESS:
                return synced

    def heartbeat(self) -> None:
        self.coordinator.heartbeat(GROUP, self.generation_id, self.identity)

    def leave(self) -> ErrorCode:
        (error,) = self.coordinator.leave(GROUP, [self.identity])
        return error

    async def commit(self, topic_partition: TopicPartition, offset: int, metadata: str = "") -> ErrorCode:
        request = CommitRequest(
            GROUP,
            {topic_partition: CommittedOffset(offset, metadata=metadata)},
            self.generation_id,
            self.identity,
        )
        return (await self.coordinator.commit_offsets(request))[topic_partition]


async def start(request: Coroutine[None, None, R]) -> asyncio.Task[R]:
    """Send a request, and return when it has been answered or waits."""
    task = asyncio.create_task(request)
    await settled()
    return task


async def settled() -> None:
    """Return when everything has been done that can be done without time passing."""
    for _ in range(10):
        await asyncio.sleep(0)


async def form_group(*clients: Client) -> None:
    """All of them in one stable generation."""
    synced = await asyncio.gather(*(client.join_and_sync() for client in clients))
    assert [result.error for result in synced] == [ErrorCode.NONE] * len(clients)
    assert len({client.generation_id for client in clients}) == 1


def waiting(coordinator: GroupCoordinator) -> dict[str, int]:
    """How many operations each purgatory holds, of those that hold any."""
    pending = {name: figures.pending for name, figures in coordinator.statistics().items()}
    return {name: count for name, count in pending.items() if count}
