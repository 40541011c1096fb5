"""The request by which a leader changes the in-sync replicas (Kafka's AlterPartition, KIP-497)."""

from collections.abc import Callable

from examples.broker.metadata import PartitionState
from examples.broker.topic_partition import TopicPartition

AlterPartition = Callable[[TopicPartition, PartitionState], PartitionState]
"""Asks the controller for the wanted in-sync replicas; returns the new state.

The second argument is the wanted state, with the epochs that the leader knows. Raises ApiError when the
controller refuses.
"""


def accept_any_isr(topic_partition: TopicPartition, wanted: PartitionState) -> PartitionState:
    """Accept every change of the in-sync replicas, for use without a controller."""
    return wanted.with_in_sync(wanted.in_sync)
