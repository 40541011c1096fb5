"""The settings of a cluster and of its topics, with Kafka's names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import CREATE_TIME, LOG_APPEND_TIME, TopicConfig

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


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise ValueError(f"an integer from {least} to {most}")
        return number

    return parse


def _one_of(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(" or ".join(map(repr, values)))
        return text

    return parse


_INT, _LONG = 2**31 - 1, 2**63 - 1

SETTINGS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "compression.type": (
        "compression_type",
        _one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    ),
    "delete.retention.ms": ("delete_retention_ms", _whole(0, _LONG)),
    "max.message.bytes": ("max_message_bytes", _whole(0, _INT)),
    "message.timestamp.type": ("message_timestamp_type", _one_of(CREATE_TIME, LOG_APPEND_TIME)),
    "min.insync.replicas": ("min_insync_replicas", _whole(1, _INT)),
    "retention.bytes": ("retention_bytes", _whole(-1, _LONG)),
    "retention.ms": ("retention_ms", _whole(-1, _LONG)),
    "segment.bytes": ("segment_bytes", _whole(14, _INT)),
}
"""The settings that can be altered: the field of TopicConfig, and the function that reads the text.

The function raises ValueError, which says what the text must be.
"""

_IN_MEMORY: Final = "logs are in memory"
_NOT_COMPACTED: Final = "nothing is compacted"
_BY_SIZE: Final = "a segment ends by its size alone"

FIXED: Final[Mapping[str, tuple[str, str]]] = {
    "cleanup.policy": ("delete", _NOT_COMPACTED),
    "file.delete.delay.ms": ("60000", _IN_MEMORY),
    "flush.messages": (str(_LONG), _IN_MEMORY),
    "flush.ms": (str(_LONG), _IN_MEMORY),
    "index.interval.bytes": ("4096", "segments have no index"),
    "max.compaction.lag.ms": (str(_LONG), _NOT_COMPACTED),
    "min.cleanable.dirty.ratio": ("0.5", _NOT_COMPACTED),
    "min.compaction.lag.ms": ("0", _NOT_COMPACTED),
    "preallocate": ("false", _IN_MEMORY),
    "remote.storage.enable": ("false", "there is no remote storage"),
    "segment.index.bytes": ("10485760", "segments have no index"),
    "segment.jitter.ms": ("0", _BY_SIZE),
    "segment.ms": ("604800000", _BY_SIZE),
    "unclean.leader.election.enable": (
        "false",
        "only a client's request elects a replica that is not in sync",
    ),
}
"""The settings that have one value, Kafka's default, and why they have no other."""

IGNORED: Final = frozenset({"message.format.version"})
"""Settings that Kafka 3 takes and ignores, too. Kafka 4 does not know them, so they are not shown."""


def parse_topic_config(values: Mapping[str, str | None], defaults: TopicConfig) -> TopicConfig:
    """Return the defaults, changed by ``values``. Raises ApiError INVALID_CONFIG for an unsupported value."""
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name in SETTINGS:
            attribute, parse = SETTINGS[name]
            try:
                changes[attribute] = parse(value or "")
            except ValueError as expected:
                raise ApiError(
                    ErrorCode.invalid_config, f"{name} cannot be {value!r}: it must be {expected}"
                ) from None
        elif name in IGNORED:
            continue
        elif name not in FIXED:
            raise ApiError(ErrorCode.invalid_config, f"unknown topic configuration {name!r}")
        elif value != FIXED[name][0]:
            only, reason = FIXED[name]
            raise ApiError(
                ErrorCode.invalid_config, f"{name} cannot be {value!r}, but {only!r} only: {reason}"
            )
    return replace(defaults, **changes)


def topic_settings(config: TopicConfig) -> dict[str, str]:
    """Return all settings as text."""
    settings = {name: str(getattr(config, attribute)) for name, (attribute, _) in SETTINGS.items()}
    return settings | {name: value for name, (value, _) in FIXED.items()}
