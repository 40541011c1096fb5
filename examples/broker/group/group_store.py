"""The groups that this broker coordinates: their partitions, and the writes of their records."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

from anyio.abc import TaskGroup

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.group import Group
from examples.broker.group.group_log import COORDINATOR_ERRORS, GroupLog, Record, load, run_in_slices


class GroupStore:
    """Groups by id, in the partitions of ``__consumer_offsets`` that this broker leads.

    It is Kafka's GroupMetadataManager. Writes and loads are tasks. A write goes on when its client
    disconnects; otherwise the log and the state in memory could differ. Kafka loads in a thread. Here
    loads run in slices, one load after the other, so that they delay no other request. ``loaded`` is called
    with each group of a partition that was loaded.
    """

    def __init__(
        self, log: GroupLog, partitions: int, tasks: TaskGroup, loaded: Callable[[Group], None]
    ) -> None:
        self._log = log
        self._partitions = partitions
        self._tasks = tasks
        self._loaded = loaded
        self._groups: dict[int, dict[str, Group]] = {}
        # The groups that are being loaded. The first partition has its turn.
        self._loads: dict[int, dict[str, Group]] = {}
        self._loader_runs = False

    def __repr__(self) -> str:
        return f"<GroupStore {sum(map(len, self._groups.values()))} groups in {len(self._groups)} partitions>"

    def __iter__(self) -> Iterator[Group]:
        for groups in self._groups.values():
            yield from groups.values()

    @property
    def partitions(self) -> list[int]:
        """The partitions that this broker leads, and has loaded or is loading."""
        return [*self._groups, *self._loads]

    @property
    def is_loading(self) -> bool:
        return bool(self._loads)

    def partition_for(self, group_id: str) -> int:
        """Return the partition of the group's records. Kafka has another hash, which no client needs."""
        return crc32(group_id.encode()) % self._partitions

    def find(self, group_id: str) -> Group | None:
        """Return the group or None.

        Raises ApiError NOT_COORDINATOR when another broker coordinates it, and COORDINATOR_LOAD_IN_PROGRESS
        until its partition is loaded.
        """
        return self._groups_beside(group_id).get(group_id)

    def find_or_create(self, group_id: str) -> Group:
        """Return the group, after creating it if necessary. Raises ApiError as ``find`` does."""
        return self._groups_beside(group_id).setdefault(group_id, Group(group_id))

    def remove(self, group: Group) -> None:
        del self._groups_beside(group.group_id)[group.group_id]

    def remove_if_unused(self, group: Group) -> None:
        """Remove a group that a request has created and then not used."""
        groups = self._groups.get(self.partition_for(group.group_id), {})
        if group.is_unused and groups.get(group.group_id) is group:
            del groups[group.group_id]

    def load(self, partition: int) -> None:
        """Load a partition soon. Raises ValueError when it is loaded already."""
        if partition in self.partitions:
            raise ValueError(f"{self!r} has loaded partition {partition} already")
        self._loads[partition] = {}
        if not self._loader_runs:
            self._loader_runs = True
            self._tasks.start_soon(self._load_all)

    def unload(self, partition: int) -> list[Group]:
        """Remove a partition, and return its groups. A load of it ends."""
        self._loads.pop(partition, None)
        return list(self._groups.pop(partition, {}).values())

    def append(
        self, group: Group, records: Sequence[Record], then: Callable[[ErrorCode], None] | None = None
    ) -> asyncio.Future[ErrorCode]:
        """Write the records, and return the outcome. A cancelled write has failed.

        ``then`` is called with the outcome, whether or not anybody awaits it.
        """
        outcome: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self._tasks.start_soon(self._append, self.partition_for(group.group_id), records, then, outcome)
        return outcome

    async def _load_all(self) -> None:
        await run_in_slices(self._load_steps())
        self._loader_runs = False

    def _load_steps(self) -> Iterator[None]:
        while self._loads:
            partition, groups = next(iter(self._loads.items()))
            for _ in load(self._log.read(partition), groups):
                yield
                if self._loads.get(partition) is not groups:
                    # It was unloaded.
                    break
            else:
                self._groups[partition] = self._loads.pop(partition)
                for group in groups.values():
                    self._loaded(group)

    async def _append(
        self,
        partition: int,
        records: Sequence[Record],
        then: Callable[[ErrorCode], None] | None,
        outcome: asyncio.Future[ErrorCode],
    ) -> None:
        error = ErrorCode.coordinator_not_available
        try:
            answer = await self._log.append(partition, records)
            error = COORDINATOR_ERRORS.get(answer, answer)
        finally:
            if then is not None:
                then(error)
            if not outcome.done():
                outcome.set_result(error)

    def _groups_beside(self, group_id: str) -> dict[str, Group]:
        """Return the groups in the same partition."""
        partition = self.partition_for(group_id)
        if partition in self._loads:
            raise ApiError(
                ErrorCode.coordinator_load_in_progress,
                f"partition {partition}, which has group {group_id!r}, is being loaded",
            )
        if partition not in self._groups:
            raise ApiError(
                ErrorCode.not_coordinator,
                f"another broker leads partition {partition}, which has group {group_id!r}",
            )
        return self._groups[partition]
