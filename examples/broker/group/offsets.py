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


class GroupOffsets:
    """The commits of a group. A commit is visible once it is committed in the log, unless a later one is.

    To compare commits, Kafka's GroupMetadata uses the offsets of the appended records. This class numbers the
    commits.
    """

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, tuple[int, CommittedOffset]] = {}
        # By the number of the commit.
        self._pending: dict[int, Mapping[TopicPartition, CommittedOffset]] = {}
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
        pending = (entry for offsets in self._pending.values() for entry in offsets)
        return list(dict.fromkeys([*self, *pending]))

    def get(self, topic_partition: TopicPartition) -> CommittedOffset:
        """Return the latest commit of the partition, or ``NO_OFFSET``."""
        _, committed = self._committed.get(topic_partition, (0, NO_OFFSET))
        return committed

    def load(self, topic_partition: TopicPartition, offset: CommittedOffset) -> None:
        """Set a commit that was read from the log. Every new commit is later."""
        self._committed[topic_partition] = 0, offset

    def prepare(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> int:
        """Record a commit that is about to be appended; return its number for ``complete``.

        Call that with the outcome in any case. A commit of ``NO_OFFSET`` deletes.
        """
        self._commits += 1
        self._pending[self._commits] = offsets
        return self._commits

    def complete(self, number: int, *, appended: bool) -> None:
        for topic_partition, offset in self._pending.pop(number).items():
            latest, _ = self._committed.get(topic_partition, (0, NO_OFFSET))
            if appended and number > latest:
                self._committed[topic_partition] = number, offset
