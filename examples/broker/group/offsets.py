"""The committed offsets of a group, by partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from examples.broker.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read, and the metadata that the client stores with it."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


NO_OFFSET: Final = CommittedOffset(-1)


@dataclass(frozen=True, slots=True, eq=False)
class PendingCommit:
    """Offsets that are being appended to the log. ``number`` is their place among the group's commits."""

    number: int
    offsets: Mapping[TopicPartition, CommittedOffset]


class GroupOffsets:
    """The commits of a group. A commit is visible once it is committed in the log, unless a later one is.

    To compare commits, Kafka's GroupMetadata uses the offsets of the appended records. This class numbers the
    commits.
    """

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, tuple[int, CommittedOffset]] = {}
        self._pending: set[PendingCommit] = set()
        self._commits = 0

    def __repr__(self) -> str:
        return f"<GroupOffsets of {len(self._committed)} partitions, {len(self._pending)} commits pending>"

    def __bool__(self) -> bool:
        """Whether there is a commit or a pending one."""
        return bool(self._pending) or any(True for _ in self)

    def __iter__(self) -> Iterator[TopicPartition]:
        """Return the partitions with a commit that is visible and not deleted."""
        return (entry for entry, (_, committed) in self._committed.items() if committed != NO_OFFSET)

    @property
    def written(self) -> list[TopicPartition]:
        """The partitions with a commit or a pending one."""
        pending = (topic_partition for commit in self._pending for topic_partition in commit.offsets)
        return list(dict.fromkeys([*self, *pending]))

    def get(self, topic_partition: TopicPartition) -> CommittedOffset:
        """Return the latest commit of the partition, or ``NO_OFFSET``."""
        _, committed = self._committed.get(topic_partition, (0, NO_OFFSET))
        return committed

    def load(self, topic_partition: TopicPartition, offset: CommittedOffset) -> None:
        """Set a commit that was read from the log. Every new commit is later."""
        self._committed[topic_partition] = 0, offset

    def prepare(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> PendingCommit:
        """Record a commit that is about to be appended. Call ``complete`` with the outcome in any case.

        A commit of ``NO_OFFSET`` deletes.
        """
        self._commits += 1
        pending = PendingCommit(self._commits, offsets)
        self._pending.add(pending)
        return pending

    def complete(self, pending: PendingCommit, *, appended: bool) -> None:
        self._pending.remove(pending)
        if not appended:
            return
        for topic_partition, offset in pending.offsets.items():
            latest, _ = self._committed.get(topic_partition, (0, NO_OFFSET))
            if pending.number > latest:
                self._committed[topic_partition] = pending.number, offset
