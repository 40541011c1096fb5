"""More partitions for a topic that exists."""

from collections.abc import Sequence
from dataclasses import dataclass

from examples.broker.controller.new_topic import check_assignment, check_total_partitions
from examples.broker.controller.placement import place
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import TopicImage


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The number of partitions that a topic is to have, after the new ones are added.

    ``assignment`` has the replicas of each new partition, the preferred leader first. Without it, the cluster
    places as many replicas as partition 0 has.
    """

    topic: str
    total: int
    assignment: tuple[tuple[int, ...], ...] | None = None

    def replicas(
        self, topic: TopicImage, live: Sequence[int], fenced: Sequence[int]
    ) -> tuple[tuple[int, ...], ...]:
        """Return the replicas of each new partition.

        Raises ApiError INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT or
        POLICY_VIOLATION.
        """
        known = len(topic.partitions)
        added = self.total - known
        if added < 1:
            raise ApiError(
                ErrorCode.invalid_partitions,
                f"{topic.name!r} has {known} partitions, so {self.total} would not be an increase",
            )
        check_total_partitions([added])
        first = topic.partitions[0].replicas
        if self.assignment is not None:
            if len(self.assignment) != added:
                raise ApiError(
                    ErrorCode.invalid_replica_assignment,
                    f"{topic.name!r} gets {added} partitions, but {len(self.assignment)} are assigned",
                )
            check_assignment(
                self.assignment, {*live}, {*live, *fenced}, factor=len(first), first_partition=known
            )
            return self.assignment
        if not live:
            raise ApiError(
                ErrorCode.invalid_replication_factor, "all brokers are fenced, so none can lead a partition"
            )
        # The brokers go on leading in turn.
        start = live.index(first[0]) if first[0] in live else 0
        return place(live, fenced, added, len(first), start + known)
