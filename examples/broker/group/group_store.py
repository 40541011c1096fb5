"""The groups that this broker coordinates, and the writing down of them."""

from collections.abc import Callable, Iterator, Sequence

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskGroup, TaskStatus

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.group import Group
from examples.broker.group.group_log import COORDINATOR_ERRORS, GroupLog, Record, load


class GroupStore:
    """Groups by id, for the partitions of ``__consumer_offsets`` led here (Kafka's GroupMetadataManager).

    Writes go on whether the client that set them off still waits or not: otherwise what the log holds and
    what is known here could part. They are tasks of ``run``, which must be running.
    """

    def __init__(self, log: GroupLog, partitions: int) -> None:
        self._log = log
        self._partitions = partitions
        self._groups: dict[int, dict[str, Group]] = {}
        self._writes: TaskGroup | None = None

    def __repr__(self) -> str:
        return f"<GroupStore {sum(map(len, self._groups.values()))} groups in {len(self._groups)} partitions>"

    def __iter__(self) -> Iterator[Group]:
        for groups in self._groups.values():
            yield from groups.values()

    @property
    def partitions(self) -> list[int]:
        """Those led here."""
        return list(self._groups)

    def partition_for(self, group_id: str) -> int:
        """Where the group's records go: as in Kafka, by Java's ``String.hashCode``."""
        code = _java_hash(group_id)
        return (0 if code == -(1 << 31) else abs(code)) % self._partitions

    def find(self, group_id: str) -> Group | None:
        """The group, if there is one. ApiError NOT_COORDINATOR when another broker would know."""
        return self._groups_beside(group_id).get(group_id)

    def find_or_create(self, group_id: str) -> Group:
        """The group, if need be a new one. ApiError NOT_COORDINATOR as for ``find``."""
        return self._groups_beside(group_id).setdefault(group_id, Group(group_id))

    def forget(self, group: Group) -> None:
        del self._groups_beside(group.group_id)[group.group_id]

    def forget_if_unused(self, group: Group) -> None:
        """Keep no group that a request has made and then not used."""
        groups = self._groups.get(self.partition_for(group.group_id), {})
        if group.is_unused and groups.get(group.group_id) is group:
            del groups[group.group_id]

    def load(self, partition: int) -> list[Group]:
        """Take over a partition: the groups its log tells of. ValueError when it is led here already."""
        if partition in self._groups:
            raise ValueError(f"partition {partition} is coordinated by {self!r} already")
        self._groups[partition] = load(self._log.read(partition))
        return list(self._groups[partition].values())

    def unload(self, partition: int) -> list[Group]:
        """Give up a partition: the groups that were coordinated here."""
        return list(self._groups.pop(partition, {}).values())

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Own the writes until cancelled; those under way then count as failed."""
        async with anyio.create_task_group() as self._writes:
            task_status.started()
            await anyio.sleep_forever()

    def append(self, group: Group, records: Sequence[Record], then: Callable[[ErrorCode], None]) -> None:
        """Write the records, and tell ``then`` once what became of them. RuntimeError without ``run``."""
        if self._writes is None:
            raise RuntimeError("nothing can be written while the coordinator does not run()")
        self._writes.start_soon(self._append, self.partition_for(group.group_id), records, then)

    async def _append(
        self, partition: int, records: Sequence[Record], then: Callable[[ErrorCode], None]
    ) -> None:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        try:
            answer = await self._log.append(partition, records)
            error = COORDINATOR_ERRORS.get(answer, answer)
        finally:
            then(error)

    def _groups_beside(self, group_id: str) -> dict[str, Group]:
        partition = self.partition_for(group_id)
        try:
            return self._groups[partition]
        except KeyError:
            raise ApiError(
                ErrorCode.NOT_COORDINATOR, f"partition {partition}, of {group_id!r}, is led elsewhere"
            ) from None


def _java_hash(text: str) -> int:
    """``String.hashCode``: of UTF-16 code units, in 32 bits with sign."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code - (1 << 32) if code >= 1 << 31 else code
