"""The brokers of the example, with the settings of the real ones that they are compared with."""

from typing import Final

from examples.broker.cluster import ClusterConfig
from examples.broker.controller.cluster_defaults import ClusterDefaults
from examples.broker.group.config import GroupConfig
from examples.broker.node.node import BrokerConfig

EXAMPLE: Final = ClusterConfig(
    brokers=3,
    port=0,
    defaults=ClusterDefaults(offsets_topic_num_partitions=3),
    broker=BrokerConfig(groups=GroupConfig(group_initial_rebalance_delay=0.0)),
)
