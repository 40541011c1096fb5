"""Topic configurations from and to text."""

import pytest

from examples.broker.controller.topic_settings import parse_topic_config, topic_settings
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import LOG_APPEND_TIME, TopicConfig

DEFAULTS = TopicConfig(min_insync_replicas=2, segment_bytes=1000, max_message_bytes=500)


def test_missing_settings_have_their_defaults() -> None:
    assert parse_topic_config({}, DEFAULTS) == DEFAULTS
    assert parse_topic_config({"segment.bytes": "14"}, DEFAULTS) == TopicConfig(2, 14, 500)
    settings = {"min.insync.replicas": "1", "segment.bytes": "2147483647", "max.message.bytes": "0"}
    assert parse_topic_config(settings, DEFAULTS) == TopicConfig(1, 2147483647, 0)


def test_a_configuration_survives_a_round_trip_through_text() -> None:
    assert parse_topic_config(dict(topic_settings(DEFAULTS)), TopicConfig()) == DEFAULTS


def test_the_supported_value_of_a_fixed_setting_is_accepted() -> None:
    assert parse_topic_config({"cleanup.policy": "delete", "retention.ms": "-1"}, DEFAULTS) == DEFAULTS


def test_retention_and_the_type_of_timestamps_are_effective_settings() -> None:
    settings = {
        "retention.ms": str(2**63 - 1),
        "retention.bytes": "1000",
        "message.timestamp.type": "LogAppendTime",
    }
    config = parse_topic_config(settings, DEFAULTS)
    assert (config.retention_ms, config.retention_bytes) == (2**63 - 1, 1000)
    assert config.message_timestamp_type == LOG_APPEND_TIME
    assert topic_settings(config).items() >= settings.items()


def test_a_setting_without_effect_is_shown_as_it_was_set() -> None:
    assert topic_settings(DEFAULTS)["segment.ms"] == "604800000"
    settings = {"segment.ms": "1000", "compression.type": "lz4", "min.cleanable.dirty.ratio": "0.01"}
    config = parse_topic_config(settings, DEFAULTS)
    assert config.without_effect == settings
    assert topic_settings(config) == topic_settings(DEFAULTS) | settings
    assert parse_topic_config({"segment.ms": "1"}, config).without_effect == settings | {"segment.ms": "1"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min.insync.replicas", "0"),
        ("min.insync.replicas", "two"),
        ("min.insync.replicas", None),
        ("segment.bytes", "13"),
        ("segment.bytes", "2147483648"),
        ("max.message.bytes", "-1"),
        ("max.message.bytes", ""),
        ("cleanup.policy", "compact"),
        ("message.timestamp.type", "Yesterday"),
        ("unclean.leader.election.enable", "true"),
        ("retention.ms", "-2"),
        ("retention.bytes", "9223372036854775808"),
        ("retention.ms", "a week"),
        ("compression.type", "rar"),
        ("compression.type", None),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "half"),
        ("flush.ms", "-1"),
        ("no.such.setting", "1"),
    ],
)
def test_an_unsupported_setting_is_refused(name: str, value: str | None) -> None:
    with pytest.raises(ApiError) as refused:
        parse_topic_config({name: value}, DEFAULTS)
    assert refused.value.code is ErrorCode.invalid_config
    assert name in str(refused.value)
