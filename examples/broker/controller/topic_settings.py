"""A topic's configuration as text, with Kafka's names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import CREATE_TIME, LOG_APPEND_TIME, TopicConfig

_INT, _LONG = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """A setting: how its text is read, and the field of TopicConfig that it changes.

    A setting without a field is shown as it was set, and has no effect here. ``default`` is its value in
    Kafka. ``parse`` raises ValueError, which says what the text must be.
    """

    parse: Callable[[str], Any]
    field: str | None = None
    default: str = ""


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


def _ratio(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError("a number from 0 to 1")
    return number


SETTINGS: Final[Mapping[str, TopicSetting]] = {
    "max.message.bytes": TopicSetting(_whole(0, _INT), "max_message_bytes"),
    "message.timestamp.type": TopicSetting(_one_of(CREATE_TIME, LOG_APPEND_TIME), "message_timestamp_type"),
    "min.insync.replicas": TopicSetting(_whole(1, _INT), "min_insync_replicas"),
    "retention.bytes": TopicSetting(_whole(-1, _LONG), "retention_bytes"),
    "retention.ms": TopicSetting(_whole(-1, _LONG), "retention_ms"),
    "segment.bytes": TopicSetting(_whole(14, _INT), "segment_bytes"),
    # Batches stay compressed as the producer has compressed them.
    "compression.type": TopicSetting(
        _one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"), default="producer"
    ),
    # Kafka 3 takes it, too, and ignores it. Kafka 4 does not know it any more.
    "message.format.version": TopicSetting(str, default="3.0-IV1"),
    # Writes are not synced, and segments have no index.
    "flush.messages": TopicSetting(_whole(1, _LONG), default=str(_LONG)),
    "flush.ms": TopicSetting(_whole(0, _LONG), default=str(_LONG)),
    "index.interval.bytes": TopicSetting(_whole(0, _INT), default="4096"),
    "segment.index.bytes": TopicSetting(_whole(4, _INT), default="10485760"),
    # The active segment is deleted when all its records are too old, so no segment has to end earlier.
    "segment.jitter.ms": TopicSetting(_whole(0, _LONG), default="0"),
    "segment.ms": TopicSetting(_whole(1, _LONG), default="604800000"),
    "file.delete.delay.ms": TopicSetting(_whole(0, _LONG), default="60000"),
    # Nothing is compacted.
    "delete.retention.ms": TopicSetting(_whole(0, _LONG), default="86400000"),
    "max.compaction.lag.ms": TopicSetting(_whole(1, _LONG), default=str(_LONG)),
    "min.cleanable.dirty.ratio": TopicSetting(_ratio, default="0.5"),
    "min.compaction.lag.ms": TopicSetting(_whole(0, _LONG), default="0"),
}

# Settings with one supported value. A request with another value is refused.
FIXED: Final = {
    "cleanup.policy": "delete",
    "preallocate": "false",
    "remote.storage.enable": "false",
    "unclean.leader.election.enable": "false",
}


def parse_topic_config(values: Mapping[str, str | None], defaults: TopicConfig) -> TopicConfig:
    """Return the defaults, changed by ``values``. Raises ApiError INVALID_CONFIG for an unsupported value."""
    changes: dict[str, Any] = {}
    shown = dict(defaults.without_effect)
    for name, value in values.items():
        setting = SETTINGS.get(name)
        if setting is not None:
            parsed = _parse(name, setting, value)
            if setting.field is not None:
                changes[setting.field] = parsed
            else:
                shown[name] = str(value)
        elif name not in FIXED:
            raise ApiError(ErrorCode.invalid_config, f"unknown topic configuration {name!r}")
        elif value != FIXED[name]:
            raise ApiError(
                ErrorCode.invalid_config,
                f"{name} cannot be {value!r}: this broker supports {FIXED[name]!r} only",
            )
    own = {name: value for name, value in shown.items() if value != SETTINGS[name].default}
    return replace(defaults, **changes, without_effect=own)


def topic_settings(config: TopicConfig) -> dict[str, str]:
    """Return all settings as text."""
    effective = {
        name: config.without_effect.get(name, setting.default)
        if setting.field is None
        else str(getattr(config, setting.field))
        for name, setting in SETTINGS.items()
    }
    return effective | FIXED


def _parse(name: str, setting: TopicSetting, value: str | None) -> Any:
    try:
        return setting.parse(value or "")
    except ValueError as expected:
        raise ApiError(
            ErrorCode.invalid_config, f"{name} cannot be {value!r}: it must be {expected}"
        ) from None
