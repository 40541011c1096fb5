"""The clients of a coordinator under test, and its log in memory."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupConfig, GroupCoordinator
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
EVENTS = TopicPartition("events", 0)
SESSION, REBALANCE, INITIAL_DELAY, TICK = 10.0, 60.0, 3.0, 0.001

COORDINATOR_ERRORS = [
    (ErrorCode.not_leader_or_follower, ErrorCode.not_coordinator),
    (ErrorCode.not_enough_replicas, ErrorCode.coordinator_not_available),
    (ErrorCode.not_enough_replicas_after_append, ErrorCode.coordinator_not_available),
    (ErrorCode.request_timed_out, ErrorCode.coordinator_not_available),
    (ErrorCode.unknown_topic_or_partition, ErrorCode.coordinator_not_available),
]
"""What the log answers, and what the client is answered then."""


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


class Hosts:
    """Coordinators on one log, which run until ``aclose``. They lead no partition yet."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._ended = asyncio.Event()
        self._hosts: list[asyncio.Task[None]] = []

    async def coordinate(self, config: GroupConfig) -> GroupCoordinator:
        started: asyncio.Future[GroupCoordinator] = asyncio.get_running_loop().create_future()
        self._hosts.append(asyncio.create_task(self._host(len(self._hosts) + 1, config, started)))
        return await started

    async def aclose(self) -> None:
        self._ended.set()
        await asyncio.gather(*self._hosts)

    async def _host(
        self, broker_id: int, config: GroupConfig, started: asyncio.Future[GroupCoordinator]
    ) -> None:
        async with GroupCoordinator.running(broker_id, self._log, config) as coordinator:
            started.set_result(coordinator)
            await self._ended.wait()


class Client:
    """One consumer, with the result of its last join. The fields of each request can be changed by name."""

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

    async def join_once(self, **changes: Any) -> JoinResult:
        """Send one JoinGroup."""
        fields: dict[str, Any] = {
            "group_id": GROUP,
            "member": self.identity,
            "protocol_type": "consumer",
            "protocols": self.protocols,
            "session_timeout": self.session,
            "rebalance_timeout": self.rebalance,
            "client_id": self.name,
        }
        return await self.coordinator.join(JoinRequest(**{**fields, **changes}))

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

    async def sync_once(self, **changes: Any) -> SyncResult:
        """Send one SyncGroup, by default without assignments."""
        return await self.coordinator.sync(SyncRequest(**self._fields(changes)))

    async def join_and_sync(self) -> SyncResult:
        """Join and sync as a consumer does: again, while the group rebalances."""
        while True:
            joined = await self.join()
            assert joined.error is ErrorCode.none, joined
            synced = await self.sync()
            if synced.error is not ErrorCode.rebalance_in_progress:
                return synced

    def heartbeat(self, **changes: Any) -> None:
        self.coordinator.heartbeat(**self._fields(changes))

    def leave(self, **changes: Any) -> ErrorCode:
        fields = self._fields(changes)
        (error,) = self.coordinator.leave(fields["group_id"], [fields["member"]])
        return error

    async def commit(
        self, topic_partition: TopicPartition, offset: int, metadata: str = "", **changes: Any
    ) -> ErrorCode:
        offsets = {topic_partition: CommittedOffset(offset, metadata=metadata)}
        request = CommitRequest(offsets=offsets, **self._fields(changes))
        return (await self.coordinator.commit_offsets(request))[topic_partition]

    def _fields(self, changes: dict[str, Any]) -> dict[str, Any]:
        fields = {"group_id": GROUP, "generation_id": self.generation_id, "member": self.identity}
        return {**fields, **changes}


async def send(client: Client, request: str, **changes: Any) -> ErrorCode:
    """Send the request of that name, and return the error in its answer."""
    coordinator, group_id = client.coordinator, changes.get("group_id", GROUP)
    try:
        match request:
            case "join":
                return (await client.join_once(**changes)).error
            case "sync":
                return (await client.sync_once(**changes)).error
            case "heartbeat":
                client.heartbeat(**changes)
            case "leave":
                return client.leave(**changes)
            case "commit":
                return await client.commit(EVENTS, 9, **changes)
            case "fetch offsets":
                coordinator.fetch_offsets(group_id)
            case "delete offsets":
                return (await coordinator.delete_offsets(group_id, [EVENTS]))[EVENTS]
            case "describe":
                coordinator.describe_group(group_id)
            case "list":
                coordinator.list_groups()
            case "delete":
                await coordinator.delete_group(group_id)
            case _:
                raise AssertionError(f"there is no request {request!r}")
    except ApiError as error:
        return error.code
    return ErrorCode.none


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


async def all_join(*clients: Client) -> tuple[Client, ...]:
    """Join all clients into one generation that has not synced. Return the leader first."""
    await asyncio.gather(*(client.join() for client in clients))
    return tuple(sorted(clients, key=lambda client: not client.leads))


def state_of(coordinator: GroupCoordinator) -> str:
    return coordinator.describe_group(GROUP).state.value


def members_of(coordinator: GroupCoordinator) -> list[MemberIdentity]:
    return [member.identity for member in coordinator.describe_group(GROUP).members.values()]


def waiting(coordinator: GroupCoordinator) -> dict[str, int]:
    """Return the number of pending operations of each purgatory that has any."""
    pending = {name: figures.pending for name, figures in coordinator.statistics().items()}
    return {name: count for name, count in pending.items() if count}


async def settles(awaitable: Awaitable[R]) -> R:
    """Await an answer that comes without a wait for time to pass."""
    before = asyncio.get_running_loop().time()
    answer = await awaitable
    assert asyncio.get_running_loop().time() == before
    return answer
