"""How a topic's configuration is written, in Kafka's names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import TopicConfig


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """One that has an effect: a field of TopicConfig, and the least that it may be."""

    name: str
    field: str
    minimum: int


SETTINGS: Final = (
    TopicSetting("min.insync.replicas", "min_insync_replicas", 1),
    TopicSetting("segment.bytes", "segment_bytes", 14),
    TopicSetting("max.message.bytes", "max_message_bytes", 0),
)

# How things are anyway. To ask for it is harmless; to accept anything else would be a lie.
FIXED: Final = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}


def parse_topic_config(values: Mapping[str, str | None], defaults: TopicConfig) -> TopicConfig:
    """The defaults, changed as ``values`` say. ApiError INVALID_CONFIG for what cannot be done."""
    changes = {}
    known = {setting.name: setting for setting in SETTINGS}
    for name, value in values.items():
        if name in known:
            changes[known[name].field] = _parse(known[name], value)
        elif name not in FIXED:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"there is no topic configuration {name!r}")
        elif value != FIXED[name]:
            raise ApiError(
                ErrorCode.INVALID_CONFIG, f"{name} cannot be {value!r}: here it is always {FIXED[name]!r}"
            )
    return replace(defaults, **changes)


def topic_settings(config: TopicConfig) -> dict[str, str]:
    """All settings, as they are written."""
    return {setting.name: str(getattr(config, setting.field)) for setting in SETTINGS} | FIXED


def _parse(setting: TopicSetting, value: str | None) -> int:
    try:
        number = int(value or "")
    except ValueError:
        number = -1
    if not setting.minimum <= number < 1 << 31:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{setting.name} cannot be {value!r}: it is an integer from {setting.minimum} to 2147483647",
        )
    return number
