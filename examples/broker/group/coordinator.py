"""The group coordinator of one broker: the members and the committed offsets of its groups."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

import anyio
from anyio.abc import TaskGroup

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.group import Group, GroupState
from examples.broker.group.group_log import GroupLog, offset_record, tombstones
from examples.broker.group.group_store import GroupStore
from examples.broker.group.membership import Membership
from examples.broker.group.offsets import NO_OFFSET, CommittedOffset
from examples.broker.group.rebalance import Rebalance
from examples.broker.group.requests import (
    NO_GENERATION,
    UNKNOWN_MEMBER,
    CommitRequest,
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

    def __init__(self, broker_id: int, log: GroupLog, tasks: TaskGroup, config: GroupConfig) -> None:
        self.broker_id = broker_id
        self.config = config
        self._purgatories = {name: Purgatory(name) for name in ("join", "sync", "heartbeat")}
        self._groups = GroupStore(log, config.offsets_topic_partitions, tasks, self._loaded)
        self._rebalance = Rebalance(
            self._groups, initial_delay=config.group_initial_rebalance_delay, **self._purgatories
        )
        self._membership = Membership(self._groups, self._rebalance, config.group_max_size)

    def __repr__(self) -> str:
        return f"<GroupCoordinator of broker {self.broker_id}: {self._groups!r}>"

    @classmethod
    @asynccontextmanager
    async def running(
        cls, broker_id: int, log: GroupLog, config: GroupConfig = DEFAULT_CONFIG
    ) -> AsyncIterator[Self]:
        """Open the purgatories "join", "sync" and "heartbeat", and run; resign when the block ends."""
        async with anyio.create_task_group() as tasks, AsyncExitStack() as purgatories:
            coordinator = cls(broker_id, log, tasks, config)
            for purgatory in coordinator._purgatories.values():
                await purgatories.enter_async_context(purgatory)
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
            self._check_group_id(request.group_id)
            return await self._membership.sync(self._group(request.group_id), request)
        except ApiError as error:
            return SyncResult(error.code)

    def heartbeat(self, group_id: str, generation_id: int, member: MemberIdentity) -> None:
        """Extend a member's session. Raises ApiError when the member has to do something else."""
        self._check_group_id(group_id)
        self._membership.heartbeat(self._group(group_id), generation_id, member)

    def leave(self, group_id: str, members: Sequence[MemberIdentity]) -> list[ErrorCode]:
        """Remove members from their group; return the answer for each.

        Raises ApiError when another broker coordinates the group, or the group id is empty.
        """
        self._check_group_id(group_id)
        group = self._groups.find(group_id) or Group(group_id)
        return [self._leave(group, member) for member in members]

    # Offsets

    async def commit_offsets(self, request: CommitRequest) -> dict[TopicPartition, ErrorCode]:
        """Commit offsets; return the answer for each, once the log has them.

        Raises ApiError when the group or the member may not commit.
        """
        group = self._group_to_commit(request)
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
        group = self._group(group_id, ErrorCode.group_id_not_found)
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

    def describe_group(self, group_id: str) -> Group:
        """Return a group; one that does not exist is DEAD. Raises ApiError when another broker has it."""
        group = self._groups.find(group_id)
        if group is None:
            group = Group(group_id)
            group.state = GroupState.DEAD
        return group

    def list_groups(self, states: Collection[str] = ()) -> list[Group]:
        """Return the groups in any of these states, in any letter case; without states, all groups.

        Raises ApiError COORDINATOR_LOAD_IN_PROGRESS while a partition is loaded.
        """
        if self._groups.is_loading:
            raise ApiError(ErrorCode.coordinator_load_in_progress, f"{self!r} does not know all groups yet")
        wanted = {state.lower() for state in states}
        return [group for group in self._groups if not wanted or group.state.value.lower() in wanted]

    async def delete_group(self, group_id: str) -> None:
        """Delete an empty group with its offsets. Raises ApiError NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND."""
        group = self._group(group_id, ErrorCode.group_id_not_found)
        if group.state is not GroupState.EMPTY:
            raise ApiError(ErrorCode.non_empty_group, f"{group!r} has members")
        self._groups.remove(group)
        self._rebalance.mark_dead(group, ErrorCode.unknown_member_id)
        error = await self._groups.append(group, tombstones(group))
        if error is not ErrorCode.none:
            raise ApiError(error, f"the deletion of {group!r} could not be stored")

    def _loaded(self, group: Group) -> None:
        for member in [*group.members.values()]:
            self._rebalance.heartbeat(group, member)

    def _check_group_id(self, group_id: str) -> None:
        if not group_id:
            raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")

    def _group(self, group_id: str, missing: ErrorCode = ErrorCode.unknown_member_id) -> Group:
        group = self._groups.find(group_id)
        if group is None:
            raise ApiError(missing, f"group {group_id!r} does not exist")
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
        return self._group(request.group_id)

    def _leave(self, group: Group, member: MemberIdentity) -> ErrorCode:
        try:
            self._membership.leave(group, member)
        except ApiError as error:
            return error.code
        return ErrorCode.none

    def _group_to_commit(self, request: CommitRequest) -> Group:
        if request.generation_id > NO_GENERATION:
            group = self._group(request.group_id, ErrorCode.group_id_not_found)
        else:
            group = self._groups.find_or_create(request.group_id)
            if group.state is GroupState.EMPTY:
                return group
        self._membership.check_commit(group, request.generation_id, request.member)
        return group

    async def _store_offsets(
        self, group: Group, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> ErrorCode:
        error = ErrorCode.none
        if offsets:
            pending = group.offsets.prepare(offsets)
            error = await self._groups.append(
                group,
                [offset_record(group.group_id, *entry) for entry in offsets.items()],
                lambda error: group.offsets.complete(pending, appended=error is ErrorCode.none),
            )
        self._groups.remove_if_unused(group)
        return error
