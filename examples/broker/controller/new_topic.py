"""A topic to create: its name, its size or its replica assignment, and its configuration."""

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final

from examples.broker.controller.placement import place
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import TopicConfig

BY_DEFAULT: Final = -1
# The limit for all topics of one request together, so that a request cannot exhaust the controller. It is
# KRaft's (ReplicationControlManager).
MAX_PARTITIONS: Final = 10_000
LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. ``assignment[i]`` has the replicas of partition i, the preferred leader first.

    With an empty assignment the cluster places the replicas. It creates ``partitions`` partitions with
    ``replication_factor`` replicas each, or the cluster's default where these are ``BY_DEFAULT``.
    """

    name: str
    partitions: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignment: tuple[tuple[int, ...], ...] = ()
    config: TopicConfig | None = None

    def size(self, defaults: ClusterDefaults) -> int:
        """Return the requested number of partitions, valid or not."""
        if self.assignment:
            return len(self.assignment)
        return defaults.num_partitions if self.partitions == BY_DEFAULT else self.partitions

    def replicas(
        self, live: Sequence[int], fenced: Sequence[int], defaults: ClusterDefaults, start: int
    ) -> tuple[tuple[int, ...], ...]:
        """Return the replicas of each partition. ``start`` selects the preferred leader of the first one.

        Raises ApiError INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
        INVALID_REPLICA_ASSIGNMENT or POLICY_VIOLATION.
        """
        check_name(self.name)
        check_total_partitions([self.size(defaults)])
        if self.assignment:
            factor = len(self.assignment[0])
            check_assignment(self.assignment, {*live}, {*live, *fenced}, factor=factor)
            return self.assignment
        partitions = self.size(defaults)
        factor = (
            defaults.default_replication_factor
            if self.replication_factor == BY_DEFAULT
            else self.replication_factor
        )
        if factor < 1:
            raise ApiError(
                ErrorCode.invalid_replication_factor, f"a partition has at least 1 replica, not {factor}"
            )
        if partitions < 1:
            raise ApiError(
                ErrorCode.invalid_partitions, f"a topic has at least 1 partition, not {partitions}"
            )
        if factor > len(live) + len(fenced):
            raise ApiError(
                ErrorCode.invalid_replication_factor,
                f"{factor} replicas need as many brokers, but {len(live) + len(fenced)} are registered",
            )
        if not live:
            raise ApiError(
                ErrorCode.invalid_replication_factor, "all brokers are fenced, so none can lead the topic"
            )
        return place(live, fenced, partitions, factor, start)


def check_total_partitions(added: Iterable[int]) -> None:
    """Raise ApiError POLICY_VIOLATION when a request adds too many partitions to all its topics together."""
    # A negative number is refused elsewhere, and must not make room for other topics here.
    total = sum(max(0, number) for number in added)
    if total > MAX_PARTITIONS:
        raise ApiError(
            ErrorCode.policy_violation,
            f"one request may create {MAX_PARTITIONS} partitions, not {total}",
        )


def check_name(name: str) -> None:
    """Raise ApiError INVALID_TOPIC_EXCEPTION unless Kafka allows the name (``Topic.validate``)."""
    if LEGAL_NAME.fullmatch(name) is None or name in {".", ".."}:
        raise ApiError(
            ErrorCode.invalid_topic_exception,
            f"{name!r} is no topic name: use 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-', but not '.' or '..'",
        )


def check_collision(name: str, topics: Iterable[str]) -> None:
    """Raise ApiError INVALID_TOPIC_EXCEPTION when a topic differs in dots and underscores alone.

    Kafka's metrics have an underscore for each dot.
    """
    alike = name.replace(".", "_")
    for topic in topics if "_" in alike else ():
        if topic.replace(".", "_") == alike:
            raise ApiError(ErrorCode.invalid_topic_exception, f"{name!r} collides with topic {topic!r}")


def check_assignment(
    assignment: Sequence[Sequence[int]],
    live: Set[int],
    registered: Set[int],
    *,
    factor: int,
    first_partition: int = 0,
) -> None:
    """Raise ApiError INVALID_REPLICA_ASSIGNMENT unless the assignment is possible.

    As in KRaft, each partition has ``factor`` replicas, and at least one of its brokers is live.
    """
    for partition, replicas in enumerate(assignment, first_partition):
        if not replicas:
            fault = "no replicas"
        elif len(set(replicas)) < len(replicas):
            fault = "a broker twice"
        elif not registered >= set(replicas):
            fault = f"brokers that are not registered: {sorted({*replicas} - registered)}"
        elif live.isdisjoint(replicas):
            fault = "fenced brokers only"
        elif len(replicas) != factor:
            fault = f"{len(replicas)} replicas where partition 0 has {factor}"
        else:
            continue
        raise ApiError(ErrorCode.invalid_replica_assignment, f"partition {partition} is assigned {fault}")
