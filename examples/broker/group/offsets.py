"""How far a group has read: what it committed, partition by partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from examples.broker.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read, and what the client wanted kept with it."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


NO_OFFSET: Final = CommittedOffset(-1)


@dataclass(frozen=True, slots=True, eq=False)
class PendingCommit:
    """Offsets on their way into the log; ``number`` is their place in it among the group's commits."""

    number: int
    offsets: Mapping[TopicPartition, CommittedOffset]


class GroupOffsets:
    """A group's commits. One is seen once the log has it for good, and never after a later one was.

    Kafka's GroupMetadata compares the offsets of the appended records for that; a number does as well.
    """

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, tuple[int, CommittedOffset]] = {}
        self._pending: set[PendingCommit] = set()
        self._commits = 0

    def __repr__(self) -> str:
        return f"<GroupOffsets of {len(self._committed)} partitions, {len(self._pending)} commits pending>"

    def __bool__(self) -> bool:
        """Whether there is any, or soon may be."""
        return bool(self._committed or self._pending)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._committed)

    @property
    def written(self) -> list[TopicPartition]:
        """The partitions of which the log has a commit, or soon may have one."""
        pending = (topic_partition for commit in self._pending for topic_partition in commit.offsets)
        return list(dict.fromkeys([*self._committed, *pending]))

    def get(self, topic_partition: TopicPartition) -> CommittedOffset:
        """The latest commit for the partition, else ``NO_OFFSET``."""
        _, committed = self._committed.get(topic_partition, (0, NO_OFFSET))
        return committed

    def load(self, topic_partition: TopicPartition, offset: CommittedOffset) -> None:
        """Take over what the log says; any commit from here on is later."""
        self._committed[topic_partition] = 0, offset

    def prepare(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> PendingCommit:
        """Note a commit that is about to be appended; ``settle`` it whatever comes of that."""
        self._commits += 1
        pending = PendingCommit(self._commits, offsets)
        self._pending.add(pending)
        return pending

    def settle(self, pending: PendingCommit, *, appended: bool) -> None:
        self._pending.remove(pending)
        if not appended:
            return
        for topic_partition, offset in pending.offsets.items():
            latest, _ = self._committed.get(topic_partition, (0, NO_OFFSET))
            if pending.number > latest:
                self._committed[topic_partition] = pending.number, offset
