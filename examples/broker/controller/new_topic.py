"""Topics and partitions to create, and the placement of their replicas."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from examples.broker.controller.settings import ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import MetadataImage, PartitionState, TopicConfig, TopicImage

BY_DEFAULT: Final = -1
# The limit for all topics of one request together, so that a request cannot exhaust the controller. It is
# KRaft's (ReplicationControlManager).
MAX_PARTITIONS: Final = 10_000
LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")

Assignment = tuple[tuple[int, ...], ...]
"""The replicas of each partition, the preferred leader first."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create.

    With an empty assignment the cluster places the replicas. It creates ``partitions`` partitions with
    ``replication_factor`` replicas each, or the cluster's default where these are ``BY_DEFAULT``.
    """

    name: str
    partitions: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignment: Assignment = ()
    config: TopicConfig | None = None

    def added(self, image: MetadataImage, defaults: ClusterDefaults) -> int:
        """Return the requested number of partitions, valid or not."""
        if self.assignment:
            return len(self.assignment)
        return defaults.num_partitions if self.partitions == BY_DEFAULT else self.partitions

    def planned(self, image: MetadataImage, defaults: ClusterDefaults) -> TopicImage:
        """Return the topic as it would be created now, on live brokers as far as there are enough.

        Raises ApiError TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS,
        INVALID_REPLICATION_FACTOR or INVALID_REPLICA_ASSIGNMENT.
        """
        if self.name in image.topics:
            raise ApiError(ErrorCode.topic_already_exists, f"topic {self.name!r} exists already")
        _check_collision(self.name, image.topics)
        check_name(self.name)
        config = defaults.topic_config if self.config is None else self.config
        replicas = self.assignment
        if replicas:
            _check_assignment(replicas, image, factor=len(replicas[0]))
        else:
            factor, partitions = self.replication_factor, self.added(image, defaults)
            if factor == BY_DEFAULT:
                factor = defaults.default_replication_factor
            if factor < 1:
                raise ApiError(
                    ErrorCode.invalid_replication_factor, f"a partition has at least 1 replica, not {factor}"
                )
            if partitions < 1:
                raise ApiError(
                    ErrorCode.invalid_partitions, f"a topic has at least 1 partition, not {partitions}"
                )
            if factor > len(image.brokers):
                raise ApiError(
                    ErrorCode.invalid_replication_factor,
                    f"{factor} replicas need as many brokers, but {len(image.brokers)} are registered",
                )
            # Each topic starts at another broker, or else the first few brokers would lead all small topics.
            replicas = _placed(image, partitions, factor, start=len(image.topics))
        return TopicImage(self.name, uuid4(), _first_states(replicas, image), config)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The number of partitions that a topic is to have, after the new ones are added.

    ``assignment`` is that of the new partitions. Without it, the cluster places as many replicas as partition
    0 has.
    """

    name: str
    total: int
    assignment: Assignment | None = None

    def added(self, image: MetadataImage, defaults: ClusterDefaults) -> int:
        """Return the requested number of new partitions, valid or not."""
        topic = image.topics.get(self.name)
        return 0 if topic is None else self.total - len(topic.partitions)

    def planned(self, image: MetadataImage, defaults: ClusterDefaults) -> TopicImage:
        """Return the topic as it would be with the partitions now.

        Raises ApiError UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR or
        INVALID_REPLICA_ASSIGNMENT.
        """
        topic, added = image.topic(self.name), self.added(image, defaults)
        known, first = len(topic.partitions), topic.partitions[0].replicas
        if added < 1:
            raise ApiError(
                ErrorCode.invalid_partitions,
                f"{self.name!r} has {known} partitions, so {self.total} would not be an increase",
            )
        replicas = self.assignment
        if replicas is None:
            # The brokers go on leading in turn.
            live = sorted(image.live_brokers)
            start = live.index(first[0]) if first[0] in live else 0
            replicas = _placed(image, added, len(first), start + known)
        elif len(replicas) != added:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"{self.name!r} gets {added} partitions, but {len(replicas)} are assigned",
            )
        else:
            _check_assignment(replicas, image, factor=len(first), first_partition=known)
        return replace(topic, partitions=topic.partitions + _first_states(replicas, image))


def place(
    live: Sequence[int], fenced: Sequence[int], partitions: int, replication_factor: int, start: int
) -> Assignment:
    """Return the replicas of each partition.

    The live brokers lead in turn, from the one at ``start`` on. The followers of one leader's partitions are
    spread over all other brokers, so that these share its load when it fails (Kafka's AdminUtils). Fenced
    brokers are used when there are too few live ones, as in KRaft's StripedReplicaPlacer.
    """
    return tuple(
        (*_rotation(live, start + partition), *fenced)[:replication_factor] for partition in range(partitions)
    )


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


def _check_collision(name: str, topics: Iterable[str]) -> None:
    """Raise ApiError INVALID_TOPIC_EXCEPTION when a topic differs in dots and underscores alone.

    Kafka's metrics have an underscore for each dot.
    """
    alike = name.replace(".", "_")
    for topic in topics if "_" in alike else ():
        if topic.replace(".", "_") == alike:
            raise ApiError(ErrorCode.invalid_topic_exception, f"{name!r} collides with topic {topic!r}")


def _check_assignment(
    assignment: Assignment, image: MetadataImage, *, factor: int, first_partition: int = 0
) -> None:
    """Raise ApiError INVALID_REPLICA_ASSIGNMENT unless the assignment is possible.

    As in KRaft, each partition has ``factor`` replicas, and at least one of its brokers is live.
    """
    registered, live = image.brokers.keys(), image.live_brokers.keys()
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


def _placed(image: MetadataImage, partitions: int, factor: int, start: int) -> Assignment:
    live = image.live_brokers.keys()
    if not live:
        raise ApiError(
            ErrorCode.invalid_replication_factor, "all brokers are fenced, so none can lead a partition"
        )
    return place(sorted(live), sorted(image.brokers.keys() - live), partitions, factor, start)


def _rotation(brokers: Sequence[int], position: int) -> Iterator[int]:
    """Return all brokers: first the leader in turn, then the others, shifted by one in each round."""
    rounds, leader = divmod(position, len(brokers))
    yield brokers[leader]
    others = len(brokers) - 1
    for follower in range(others):
        yield brokers[(leader + 1 + (rounds + follower) % others) % len(brokers)]


def _first_states(assignment: Assignment, image: MetadataImage) -> tuple[PartitionState, ...]:
    """Return the states of new partitions: the first live replica leads, and all live ones are in sync."""
    live = image.live_brokers.keys()
    in_sync = [(each, tuple(replica for replica in each if replica in live)) for each in assignment]
    return tuple(PartitionState(each, living, living[0]) for each, living in in_sync)
