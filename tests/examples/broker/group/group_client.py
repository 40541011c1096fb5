"""The clients of a coordinator under test, and its log in memory."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import TypeVar

from examples.broker.errors import ErrorCode
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.group.group import Group
from examples.broker.group.group_log import Record, load
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
    """A log of all partitions in memory. It fails with ``error``, and waits for ``appended``."""

    def __init__(self) -> None:
        self.records: defaultdict[int, list[Record]] = defaultdict(list)
        self.error = ErrorCode.none
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
    """One consumer, with the result of its last join."""

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
        self.joined = JoinResult(ErrorCode.none, "")

    @property
    def identity(self) -> MemberIdentity:
        return MemberIdentity(self.member_id, self.instance)

    @property
    def leads(self) -> bool:
        return bool(self.joined.members)

    async def join_once(self, **changes: object) -> JoinResult:
        """Send one JoinGroup."""
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
        """Join as a consumer does: a new member joins twice."""
        result = await self.join_once()
        if result.error is ErrorCode.member_id_required:
            self.member_id = result.member_id
            result = await self.join_once()
        if result.error is ErrorCode.none:
            self.member_id, self.generation_id, self.joined = result.member_id, result.generation_id, result
        return result

    async def sync(self, assignments: Mapping[str, bytes] | None = None) -> SyncResult:
        """Sync. By default the leader assigns its own member id to each member."""
        if assignments is None:
            assignments = {member.member_id: member.member_id.encode() for member in self.joined.members}
        return await self.sync_once(assignments=assignments)

    async def sync_once(self, **changes: object) -> SyncResult:
        """Send one SyncGroup, by default without assignments."""
        fields: dict[str, object] = {
            "group_id": GROUP,
            "generation_id": self.generation_id,
            "member": self.identity,
        }
        return await self.coordinator.sync(SyncRequest(**{**fields, **changes}))  # type: ignore[arg-type]  # by name

    async def join_and_sync(self) -> SyncResult:
        """Join and sync as a consumer does: again, while the group rebalances."""
        while True:
            joined = await self.join()
            assert joined.error is ErrorCode.none, joined
            synced = await self.sync()
            if synced.error is not ErrorCode.rebalance_in_progress:
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
    """Start a request, and return when it is answered or waits."""
    task = asyncio.create_task(request)
    await settled()
    return task


async def settled() -> None:
    """Wait until all tasks wait for time to pass."""
    for _ in range(10):
        await asyncio.sleep(0)


async def lead(coordinator: GroupCoordinator, *partitions: int) -> None:
    """Let the coordinator load these partitions, whose logs are short."""
    for partition in partitions:
        coordinator.elected(partition)
    await settled()


def stored(log: MemoryLog, partition: int) -> dict[str, Group]:
    """Return the groups that the next coordinator would find."""
    groups: dict[str, Group] = {}
    for _ in load(log.read(partition), groups):
        pass
    return groups


async def form_group(*clients: Client) -> None:
    """Join all clients into one stable generation."""
    synced = await asyncio.gather(*(client.join_and_sync() for client in clients))
    assert [result.error for result in synced] == [ErrorCode.none] * len(clients)
    assert len({client.generation_id for client in clients}) == 1


def waiting(coordinator: GroupCoordinator) -> dict[str, int]:
    """Return the number of pending operations of each purgatory that has any."""
    pending = {name: figures.pending for name, figures in coordinator.statistics().items()}
    return {name: count for name, count in pending.items() if count}
