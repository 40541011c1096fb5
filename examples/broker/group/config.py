"""The configuration of a group coordinator."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Kafka's ``group.*`` and ``offset*`` settings, with its names and defaults. Times are in seconds."""

    group_initial_rebalance_delay: float = 3.0
    group_min_session_timeout: float = 6.0
    group_max_session_timeout: float = 1800.0
    group_max_size: int = (1 << 31) - 1
    offset_metadata_max_bytes: int = 4096
    offsets_topic_partitions: int = 50
