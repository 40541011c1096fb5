"""A topic's configuration as text, with Kafka's names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import TopicConfig


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """A setting with an effect: its name, its field of TopicConfig and its minimum."""

    name: str
    field: str
    minimum: int


SETTINGS: Final = (
    TopicSetting("min.insync.replicas", "min_insync_replicas", 1),
    TopicSetting("segment.bytes", "segment_bytes", 14),
    TopicSetting("max.message.bytes", "max_message_bytes", 0),
)

# Settings with one supported value. A request with another value is refused.
FIXED: Final = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}


def parse_topic_config(values: Mapping[str, str | None], defaults: TopicConfig) -> TopicConfig:
    """Return the defaults, changed by ``values``. Raises ApiError INVALID_CONFIG for an unsupported value."""
    changes = {}
    known = {setting.name: setting for setting in SETTINGS}
    for name, value in values.items():
        if name in known:
            changes[known[name].field] = _parse(known[name], value)
        elif name not in FIXED:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"unknown topic configuration {name!r}")
        elif value != FIXED[name]:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"{name} cannot be {value!r}: this broker supports {FIXED[name]!r} only",
            )
    return replace(defaults, **changes)


def topic_settings(config: TopicConfig) -> dict[str, str]:
    """Return all settings as text."""
    return {setting.name: str(getattr(config, setting.field)) for setting in SETTINGS} | FIXED


def _parse(setting: TopicSetting, value: str | None) -> int:
    try:
        number = int(value or "")
    except ValueError:
        number = -1
    if not setting.minimum <= number < 1 << 31:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{setting.name} cannot be {value!r}: it must be an integer from {setting.minimum} to 2147483647",
        )
    return number
