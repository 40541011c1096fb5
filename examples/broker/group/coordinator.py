"""The group coordinator of one broker: the members and the committed offsets of its groups."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

import anyio
from anyio.abc import TaskGroup

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.group import Group, GroupState
from examples.broker.group.group_log import GroupLog, Record, offset_record, tombstones
from examples.broker.group.group_store import GroupStore
from examples.broker.group.membership import Membership
from examples.broker.group.offsets import NO_OFFSET, CommittedOffset
from examples.broker.group.rebalance import Rebalance
from examples.broker.group.requests import (
    NO_GENERATION,
    UNKNOWN_MEMBER,
    CommitRequest,
    GroupDescription,
    JoinRequest,
    JoinResult,
    MemberIdentity,
    SyncRequest,
    SyncResult,
)
from examples.broker.topic_partition import TopicPartition
from purgatory import Purgatory, PurgatoryStatistics


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Kafka's ``group.*`` and ``offset*`` settings, with its names and defaults. Times are in seconds."""

    group_initial_rebalance_delay: float = 3.0
    group_min_session_timeout: float = 6.0
    group_max_session_timeout: float = 1800.0
    group_max_size: int = (1 << 31) - 1
    offset_metadata_max_bytes: int = 4096
    offsets_topic_partitions: int = 50


DEFAULT_CONFIG: Final = GroupConfig()


class GroupCoordinator:
    """The classic group protocol, after kafka.coordinator.group.GroupCoordinator.

    State changes between awaits only, so there are no locks. A request for a group whose partition another
    broker leads raises NOT_COORDINATOR, and COORDINATOR_LOAD_IN_PROGRESS until this broker has loaded it.
    """

    def __init__(
        self,
        broker_id: int,
        log: GroupLog,
        tasks: TaskGroup,
        *,
        join: Purgatory,
        sync: Purgatory,
        heartbeat: Purgatory,
        config: GroupConfig,
    ) -> None:
        self.broker_id = broker_id
        self.config = config
        self._purgatories = {"join": join, "sync": sync, "heartbeat": heartbeat}
        self._groups = GroupStore(log, config.offsets_topic_partitions, tasks, self._loaded)
        self._rebalance = Rebalance(self._groups, join, sync, heartbeat, config.group_initial_rebalance_delay)
        self._membership = Membership(self._groups, self._rebalance, config.group_max_size)

    def __repr__(self) -> str:
        return f"<GroupCoordinator of broker {self.broker_id}: {self._groups!r}>"

    @classmethod
    @asynccontextmanager
    async def running(
        cls, broker_id: int, log: GroupLog, config: GroupConfig = DEFAULT_CONFIG
    ) -> AsyncIterator[Self]:
        """Open the purgatories "join", "sync" and "heartbeat", and run; resign when the block ends."""
        async with (
            Purgatory("join") as join,
            Purgatory("sync") as sync,
            Purgatory("heartbeat") as heartbeat,
            anyio.create_task_group() as tasks,
        ):
            coordinator = cls(broker_id, log, tasks, join=join, sync=sync, heartbeat=heartbeat, config=config)
            try:
                yield coordinator
            finally:
                for partition in coordinator._groups.partitions:
                    coordinator.resigned(partition)
                tasks.cancel_scope.cancel()

    def statistics(self) -> dict[str, PurgatoryStatistics]:
        """Return the statistics of the purgatories by name."""
        return {name: purgatory.statistics() for name, purgatory in self._purgatories.items()}

    # Leadership

    def partition_for(self, group_id: str) -> int:
        """Return the partition of ``__consumer_offsets`` whose leader coordinates the group."""
        return self._groups.partition_for(group_id)

    def elected(self, partition: int) -> None:
        """Load the groups of a partition from its log soon, and coordinate them.

        The members keep their ids and their generation. Each has a whole session timeout from then on to find
        the new coordinator for its next heartbeat.
        """
        self._groups.load(partition)

    def resigned(self, partition: int) -> None:
        """Stop coordinating the groups of a partition; pending requests are answered NOT_COORDINATOR."""
        for group in self._groups.unload(partition):
            self._rebalance.mark_dead(group, ErrorCode.not_coordinator)

    # Membership

    async def join(self, request: JoinRequest) -> JoinResult:
        """Join a group, or rejoin it. Returns when the next generation begins, or with an error."""
        try:
            group = self._group_to_join(request)
            try:
                return await self._membership.join(group, request)
            finally:
                self._groups.remove_if_unused(group)
        except ApiError as error:
            return JoinResult(error.code, request.member.member_id)

    async def sync(self, request: SyncRequest) -> SyncResult:
        """Get the member's assignment; the leader brings all assignments. Returns once the log has them."""
        try:
            return await self._membership.sync(self._known_group(request.group_id), request)
        except ApiError as error:
            return SyncResult(error.code)

    def heartbeat(self, group_id: str, generation_id: int, member: MemberIdentity) -> None:
        """Extend a member's session. Raises ApiError when the member has to do something else."""
        self._membership.heartbeat(self._known_group(group_id), generation_id, member)

    def leave(self, group_id: str, members: Sequence[MemberIdentity]) -> list[ErrorCode]:
        """Remove members from their group; return the answer for each.

        Raises ApiError when another broker coordinates the group, or the group id is empty.
        """
        self._check_group_id(group_id)
        group = self._groups.find(group_id)
        return [self._leave(group, member) for member in members]

    # Offsets

    async def commit_offsets(self, request: CommitRequest) -> dict[TopicPartition, ErrorCode]:
        """Commit offsets; return the answer for each, once the log has them.

        Raises ApiError when the group or the member may not commit.
        """
        group = self._committing_group(request)
        limit = self.config.offset_metadata_max_bytes
        answers = dict.fromkeys(request.offsets, ErrorCode.offset_metadata_too_large)
        accepted = {
            entry: committed
            for entry, committed in request.offsets.items()
            if len(committed.metadata) <= limit
        }
        error = await self._store_offsets(group, accepted)
        if error is not ErrorCode.message_too_large:
            answers |= dict.fromkeys(accepted, error)
        return answers

    def fetch_offsets(
        self, group_id: str, topic_partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return the committed offsets of these partitions, or of all partitions that have one.

        A partition without a committed offset has ``NO_OFFSET``.
        """
        group = self._groups.find(group_id) or Group(group_id)
        wanted = group.offsets if topic_partitions is None else topic_partitions
        return {topic_partition: group.offsets.get(topic_partition) for topic_partition in wanted}

    async def delete_offsets(
        self, group_id: str, topic_partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Delete committed offsets (KIP-496); return the answer for each, once the log has it.

        The answer is GROUP_SUBSCRIBED_TO_TOPIC while a member may subscribe to the topic. Raises ApiError
        INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP for members that are no consumers, or what the
        log answers.
        """
        self._check_group_id(group_id)
        group = self._existing_group(group_id)
        subscribed = group.subscribed_topics()
        answers = {
            entry: ErrorCode.none
            if subscribed is not None and entry.topic not in subscribed
            else ErrorCode.group_subscribed_to_topic
            for entry in topic_partitions
        }
        deleted = [entry for entry, answer in answers.items() if answer is ErrorCode.none]
        error = await self._store_offsets(group, dict.fromkeys(deleted, NO_OFFSET))
        if error is not ErrorCode.none:
            raise ApiError(error, f"the deletion of offsets of {group!r} could not be stored")
        return answers

    # Administration

    def describe_group(self, group_id: str) -> GroupDescription:
        """Describe a group; one that does not exist is "Dead".

        Raises ApiError when another broker coordinates it.
        """
        group = self._groups.find(group_id)
        if group is None:
            return GroupDescription(group_id, GroupState.DEAD.value)
        return group.describe()

    def list_groups(self, states: Collection[str] = ()) -> list[GroupDescription]:
        """Return the groups in any of these states, in any letter case; without states, all groups.

        Raises ApiError COORDINATOR_LOAD_IN_PROGRESS while a partition is loaded.
        """
        if self._groups.is_loading:
            raise ApiError(ErrorCode.coordinator_load_in_progress, f"{self!r} does not know all groups yet")
        wanted = {state.lower() for state in states}
        return [
            group.describe() for group in self._groups if not wanted or group.state.value.lower() in wanted
        ]

    async def delete_group(self, group_id: str) -> None:
        """Delete an empty group with its offsets. Raises ApiError NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND."""
        group = self._existing_group(group_id)
        if group.state is not GroupState.EMPTY:
            raise ApiError(ErrorCode.non_empty_group, f"{group!r} has members")
        self._groups.remove(group)
        self._rebalance.mark_dead(group, ErrorCode.unknown_member_id)
        error = await self._append(group, tombstones(group), lambda _: None)
        if error is not ErrorCode.none:
            raise ApiError(error, f"the deletion of {group!r} could not be stored")

    def _loaded(self, group: Group) -> None:
        for member in [*group.members.values()]:
            self._rebalance.heartbeat(group, member)

    def _check_group_id(self, group_id: str) -> None:
        if not group_id:
            raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")

    def _existing_group(self, group_id: str) -> Group:
        group = self._groups.find(group_id)
        if group is None:
            raise ApiError(ErrorCode.group_id_not_found, f"group {group_id!r} does not exist")
        return group

    def _known_group(self, group_id: str) -> Group:
        self._check_group_id(group_id)
        group = self._groups.find(group_id)
        if group is None:
            raise ApiError(ErrorCode.unknown_member_id, f"group {group_id!r} does not exist")
        return group

    def _group_to_join(self, request: JoinRequest) -> Group:
        self._check_group_id(request.group_id)
        shortest, longest = self.config.group_min_session_timeout, self.config.group_max_session_timeout
        if not shortest <= request.session_timeout <= longest:
            raise ApiError(
                ErrorCode.invalid_session_timeout,
                f"a session timeout must be {shortest:g} to {longest:g} s, not {request.session_timeout:g} s",
            )
        if request.member.member_id == UNKNOWN_MEMBER:
            return self._groups.find_or_create(request.group_id)
        return self._known_group(request.group_id)

    def _leave(self, group: Group | None, member: MemberIdentity) -> ErrorCode:
        if group is None:
            return ErrorCode.unknown_member_id
        try:
            self._membership.leave(group, member)
        except ApiError as error:
            return error.code
        return ErrorCode.none

    def _committing_group(self, request: CommitRequest) -> Group:
        group = self._groups.find(request.group_id)
        has_no_generation = request.generation_id <= NO_GENERATION
        if group is None:
            if not has_no_generation:
                raise ApiError(ErrorCode.group_id_not_found, f"group {request.group_id!r} does not exist")
            return self._groups.find_or_create(request.group_id)
        if has_no_generation and group.state is GroupState.EMPTY:
            return group
        self._membership.check_commit(group, request.generation_id, request.member)
        return group

    async def _store_offsets(
        self, group: Group, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> ErrorCode:
        error = ErrorCode.none
        if offsets:
            pending = group.offsets.prepare(offsets)
            error = await self._append(
                group,
                [offset_record(group.group_id, *entry) for entry in offsets.items()],
                lambda error: group.offsets.complete(pending, appended=error is ErrorCode.none),
            )
        self._groups.remove_if_unused(group)
        return error

    async def _append(
        self, group: Group, records: Sequence[Record], then: Callable[[ErrorCode], None]
    ) -> ErrorCode:
        answer: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def appended(error: ErrorCode) -> None:
            then(error)
            if not answer.done():
                answer.set_result(error)

        self._groups.append(group, records, appended)
        return await answer
