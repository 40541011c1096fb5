"""The defaults of a cluster."""

from dataclasses import dataclass, field
from typing import Final

from examples.broker.metadata import TopicConfig

OFFSETS_TOPIC: Final = "__consumer_offsets"


@dataclass(frozen=True, slots=True)
class ClusterDefaults:
    """Kafka's broker settings, with the same names and, except for ``topic_config``, the same defaults.

    ``broker_session_timeout`` is in seconds. ``topic_config`` is the configuration of topics that are created
    without one. The offsets topic has fewer replicas when there are fewer brokers.
    """

    num_partitions: int = 1
    default_replication_factor: int = 1
    topic_config: TopicConfig = field(default_factory=TopicConfig)
    auto_create_topics_enable: bool = True
    offsets_topic_num_partitions: int = 50
    offsets_topic_replication_factor: int = 3
    broker_session_timeout: float = 9.0
