"""The settings of both clusters, in which neither has an advantage."""

from typing import Final

from examples.broker.cluster import ClusterConfig
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.group.coordinator import GroupConfig
from examples.broker.metadata import TopicConfig
from examples.broker.node.node import BrokerConfig

EXAMPLE: Final = ClusterConfig(
    brokers=3,
    port=0,
    defaults=ClusterDefaults(
        default_replication_factor=3,
        offsets_topic_num_partitions=3,
        topic_config=TopicConfig(
            segment_bytes=1 << 30, max_message_bytes=1_048_588, retention_ms=7 * 24 * 3_600_000
        ),
    ),
    broker=BrokerConfig(groups=GroupConfig(group_initial_rebalance_delay=0.0)),
)

# Records may be old: nothing is deleted while scenarios run.
KAFKA: Final = {"log_retention_check_interval_ms": 3_600_000, "log_initial_task_delay_ms": 3_600_000}
