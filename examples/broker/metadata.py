"""The cluster's metadata as values: brokers, topics, and the leader and replicas of each partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self
from uuid import UUID

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.topic_partition import TopicPartition

NO_LEADER: Final = -1

# The values of message.timestamp.type: a record has the time of its producer, or that of its append.
CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"


def address(host: str, port: int) -> str:
    """Return ``host:port``, with an IPv6 address in brackets, as clients take it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker and its address. A fenced broker leads nothing: its session timed out, or it has stopped.

    ``host`` is for clients. Other brokers connect to ``peer_host``, if it is given.
    """

    broker_id: int
    host: str
    port: int
    fenced: bool = False
    peer_host: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition's replicas, leader and in-sync replicas (Kafka's PartitionRegistration).

    The first of ``replicas`` is the preferred leader. ``leader_epoch`` counts the leaderships.
    ``partition_epoch`` counts all changes, so that a newer state is distinguished from an older one.
    """

    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0

    def led_by(self, leader: int) -> Self:
        """Return the next state, with this leader in a new leader epoch."""
        return replace(
            self,
            leader=leader,
            leader_epoch=self.leader_epoch + 1,
            partition_epoch=self.partition_epoch + 1,
        )

    def with_in_sync(self, in_sync: tuple[int, ...]) -> Self:
        return replace(self, in_sync=in_sync, partition_epoch=self.partition_epoch + 1)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic's settings, with Kafka's names. A retention of -1 is unlimited.

    ``compression_type`` and ``delete_retention_ms`` are shown alone: batches stay as their producer has
    compressed them, and nothing is compacted. Clients create topics with them.
    """

    min_insync_replicas: int = 1
    segment_bytes: int = 1 << 20
    max_message_bytes: int = 1 << 20
    retention_ms: int = -1
    retention_bytes: int = -1
    message_timestamp_type: str = CREATE_TIME
    compression_type: str = "producer"
    delete_retention_ms: int = 86_400_000


@dataclass(frozen=True, slots=True)
class TopicImage:
    """One topic. ``partitions[i]`` is the state of partition i."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionState, ...]
    config: TopicConfig = TopicConfig()


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The cluster's metadata at one moment. ``version`` grows with every change."""

    version: int = 0
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)

    @property
    def live_brokers(self) -> Mapping[int, BrokerRegistration]:
        """The brokers that are not fenced, by id."""
        return {key: broker for key, broker in self.brokers.items() if not broker.fenced}

    def topic(self, name: str) -> TopicImage:
        """Return a topic. Raises ApiError UNKNOWN_TOPIC_OR_PARTITION when it does not exist."""
        topic = self.topics.get(name)
        if topic is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"topic {name!r} does not exist")
        return topic

    def partition(self, topic_partition: TopicPartition) -> PartitionState | None:
        topic = self.topics.get(topic_partition.topic)
        if topic is None or not 0 <= topic_partition.partition < len(topic.partitions):
            return None
        return topic.partitions[topic_partition.partition]

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        for topic in self.topics.values():
            for index, state in enumerate(topic.partitions):
                yield TopicPartition(topic.name, index), state
