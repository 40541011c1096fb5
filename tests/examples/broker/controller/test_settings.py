"""Topic configurations from and to text."""

import pytest

from examples.broker.controller.settings import FIXED, parse_topic_config, topic_settings
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import LOG_APPEND_TIME, TopicConfig

DEFAULTS = TopicConfig(min_insync_replicas=2, segment_bytes=1000, max_message_bytes=500)


def test_missing_settings_have_their_defaults() -> None:
    assert parse_topic_config({}, DEFAULTS) == DEFAULTS
    assert parse_topic_config({"segment.bytes": "14"}, DEFAULTS) == TopicConfig(2, 14, 500)


def test_the_format_that_kafka_ignores_is_ignored_and_not_shown() -> None:
    config = parse_topic_config({"message.format.version": "0.10.0.0"}, DEFAULTS)
    assert config == DEFAULTS
    assert "message.format.version" not in topic_settings(config)


def test_each_setting_survives_a_round_trip_through_text() -> None:
    config = TopicConfig(3, 14, 0, 2**63 - 1, 1000, LOG_APPEND_TIME, "lz4", 900)
    assert parse_topic_config(dict(topic_settings(config)), DEFAULTS) == config


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("min.insync.replicas", "0", "an integer from 1 to 2147483647"),
        ("min.insync.replicas", "two", "an integer"),
        ("min.insync.replicas", None, "an integer"),
        ("segment.bytes", "13", "an integer from 14"),
        ("segment.bytes", "2147483648", "an integer"),
        ("max.message.bytes", "-1", "an integer from 0"),
        ("max.message.bytes", "", "an integer"),
        ("message.timestamp.type", "Yesterday", "'CreateTime' or 'LogAppendTime'"),
        ("retention.ms", "-2", "an integer from -1"),
        ("retention.bytes", "9223372036854775808", "an integer"),
        ("delete.retention.ms", "-1", "an integer from 0"),
        ("compression.type", "rar", "'producer' or"),
        ("no.such.setting", "1", "unknown"),
        *((name, "12345", reason) for name, (_, reason) in FIXED.items()),
        ("cleanup.policy", None, "'delete' only"),
    ],
)
def test_an_unsupported_value_is_refused_with_the_reason(name: str, value: str | None, reason: str) -> None:
    with pytest.raises(ApiError, match=reason) as refused:
        parse_topic_config({name: value}, DEFAULTS)
    assert refused.value.code is ErrorCode.invalid_config
    assert name in str(refused.value)
