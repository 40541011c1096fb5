"""The groups that this broker coordinates, and the writes of their records."""

from collections.abc import Callable, Iterator, Sequence

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskGroup, TaskStatus

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.group import Group
from examples.broker.group.group_loader import GroupLoader
from examples.broker.group.group_log import COORDINATOR_ERRORS, GroupLog, Record


class GroupStore:
    """Groups by id, in the partitions of ``__consumer_offsets`` that this broker leads.

    It is Kafka's GroupMetadataManager. A write goes on when its client disconnects; otherwise the log and the
    state in memory could differ. Writes and loads are tasks of ``run``, which must be running. ``loaded`` is
    called with each group of a partition that was loaded.
    """

    def __init__(self, log: GroupLog, partitions: int, loaded: Callable[[Group], None]) -> None:
        self._log = log
        self._partitions = partitions
        self._loaded = loaded
        self._loader = GroupLoader(log, self._add_loaded)
        self._groups: dict[int, dict[str, Group]] = {}
        self._writes: TaskGroup | None = None

    def __repr__(self) -> str:
        return f"<GroupStore {sum(map(len, self._groups.values()))} groups in {len(self._groups)} partitions>"

    def __iter__(self) -> Iterator[Group]:
        for groups in self._groups.values():
            yield from groups.values()

    @property
    def partitions(self) -> list[int]:
        """The partitions that this broker leads and has loaded."""
        return list(self._groups)

    @property
    def is_loading(self) -> bool:
        return bool(self._loader)

    def partition_for(self, group_id: str) -> int:
        """Return the partition of the group's records: as in Kafka, by Java's ``String.hashCode``."""
        code = _java_hash(group_id)
        return (0 if code == -(1 << 31) else abs(code)) % self._partitions

    def find(self, group_id: str) -> Group | None:
        """Return the group or None.

        Raises ApiError NOT_COORDINATOR when another broker coordinates it, and COORDINATOR_LOAD_IN_PROGRESS
        until its partition is loaded.
        """
        return self._groups_of_partition(group_id).get(group_id)

    def find_or_create(self, group_id: str) -> Group:
        """Return the group, after creating it if necessary. Raises ApiError as ``find`` does."""
        return self._groups_of_partition(group_id).setdefault(group_id, Group(group_id))

    def remove(self, group: Group) -> None:
        del self._groups_of_partition(group.group_id)[group.group_id]

    def remove_if_unused(self, group: Group) -> None:
        """Remove a group that a request has created and then not used."""
        groups = self._groups.get(self.partition_for(group.group_id), {})
        if group.is_unused and groups.get(group.group_id) is group:
            del groups[group.group_id]

    def load(self, partition: int) -> None:
        """Load a partition soon. Raises ValueError when it is loaded already."""
        if partition in self._groups or partition in self._loader:
            raise ValueError(f"{self!r} has loaded partition {partition} already")
        self._loader.begin(partition)

    def unload(self, partition: int) -> list[Group]:
        """Remove a partition, and return its groups."""
        self._loader.stop(partition)
        return list(self._groups.pop(partition, {}).values())

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Run the writes and the loads until cancelled. Writes in progress then count as failed."""
        async with anyio.create_task_group() as self._writes:
            task_status.started()
            await self._loader.run()

    def append(self, group: Group, records: Sequence[Record], then: Callable[[ErrorCode], None]) -> None:
        """Write the records, and call ``then`` once with the outcome. Raises RuntimeError without ``run``."""
        if self._writes is None:
            raise RuntimeError("the coordinator cannot write: await its run() in a task first")
        self._writes.start_soon(self._append, self.partition_for(group.group_id), records, then)

    async def _append(
        self, partition: int, records: Sequence[Record], then: Callable[[ErrorCode], None]
    ) -> None:
        error = ErrorCode.coordinator_not_available
        try:
            answer = await self._log.append(partition, records)
            error = COORDINATOR_ERRORS.get(answer, answer)
        finally:
            then(error)

    def _groups_of_partition(self, group_id: str) -> dict[str, Group]:
        partition = self.partition_for(group_id)
        if partition in self._loader:
            raise ApiError(
                ErrorCode.coordinator_load_in_progress,
                f"partition {partition}, which has group {group_id!r}, is being loaded",
            )
        try:
            return self._groups[partition]
        except KeyError:
            raise ApiError(
                ErrorCode.not_coordinator,
                f"another broker leads partition {partition}, which has group {group_id!r}",
            ) from None

    def _add_loaded(self, partition: int, groups: dict[str, Group]) -> None:
        self._groups[partition] = groups
        for group in groups.values():
            self._loaded(group)


def _java_hash(text: str) -> int:
    """Return Java's ``String.hashCode``: of the UTF-16 code units, as a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code - (1 << 32) if code >= 1 << 31 else code
