"""A topic as somebody wants it: its name, its size or its very assignment, its configuration."""

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final

from examples.broker.controller.cluster_defaults import ClusterDefaults
from examples.broker.controller.placement import place
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import TopicConfig

BY_DEFAULT: Final = -1
# KRaft's limit (ReplicationControlManager), of all topics of a request together, so that one request cannot
# exhaust the controller.
MAX_PARTITIONS: Final = 10_000
LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class NewTopic:
    """``assignment[i]`` are the replicas of partition i, preferred leader first; empty: the cluster places.

    Then there are as many partitions and replicas as asked for, or as the cluster has ``BY_DEFAULT``.
    """

    name: str
    partitions: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignment: tuple[tuple[int, ...], ...] = ()
    config: TopicConfig | None = None

    def size(self, defaults: ClusterDefaults) -> int:
        """The number of partitions asked for, whether there can be so many or not."""
        if self.assignment:
            return len(self.assignment)
        return defaults.num_partitions if self.partitions == BY_DEFAULT else self.partitions

    def replicas(
        self, live: Sequence[int], fenced: Sequence[int], defaults: ClusterDefaults, start: int
    ) -> tuple[tuple[int, ...], ...]:
        """Who holds each partition; ``start`` says which live broker is the first one's preferred leader.

        ApiError INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
        INVALID_REPLICA_ASSIGNMENT, POLICY_VIOLATION.
        """
        check_name(self.name)
        check_total_partitions([self], defaults)
        if self.assignment:
            check_assignment(self.assignment, {*live}, {*live, *fenced})
            return self.assignment
        partitions = self.size(defaults)
        factor = (
            defaults.default_replication_factor
            if self.replication_factor == BY_DEFAULT
            else self.replication_factor
        )
        if partitions < 1:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS, f"{partitions} is no number of partitions: 1 or more are"
            )
        if factor < 1:
            raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, f"{factor} replicas are no replicas")
        if factor > len(live) + len(fenced):
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{factor} replicas need as many brokers: {len(live) + len(fenced)} are registered",
            )
        if not live:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR, "all brokers are fenced: none could lead the topic"
            )
        return place(live, fenced, partitions, factor, start)


def check_total_partitions(topics: Iterable[NewTopic], defaults: ClusterDefaults) -> None:
    """ApiError POLICY_VIOLATION when the topics of one request have too many partitions."""
    # What is no number of partitions is refused elsewhere, and makes no room for others here.
    total = sum(max(0, topic.size(defaults)) for topic in topics)
    if total > MAX_PARTITIONS:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"{total} partitions are too many for one request: {MAX_PARTITIONS} is the most",
        )


def check_name(name: str) -> None:
    """ApiError INVALID_TOPIC_EXCEPTION unless Kafka allows it (``Topic.validate``)."""
    if LEGAL_NAME.fullmatch(name) is None or name in {".", ".."}:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name!r} is no topic name: 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-' are, but not '.' and '..'",
        )


def check_assignment(assignment: Sequence[Sequence[int]], live: Set[int], registered: Set[int]) -> None:
    """ApiError INVALID_REPLICA_ASSIGNMENT unless each partition can be held, and led, as it says.

    As in KRaft each partition has the same number of replicas, and one of its brokers at least is live.
    """
    for partition, replicas in enumerate(assignment):
        if not replicas:
            fault = "no replicas"
        elif len(set(replicas)) < len(replicas):
            fault = "a broker twice"
        elif not registered >= set(replicas):
            fault = f"brokers that are not registered: {sorted({*replicas} - registered)}"
        elif live.isdisjoint(replicas):
            fault = "fenced brokers only"
        elif len(replicas) != len(assignment[0]):
            fault = f"{len(replicas)} replicas where partition 0 has {len(assignment[0])}"
        else:
            continue
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {partition} is assigned {fault}")
