"""Topic configurations from and to text."""

import pytest

from examples.broker.controller.topic_settings import parse_topic_config, topic_settings
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import TopicConfig

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
        ("retention.ms", "604800000"),
        ("no.such.setting", "1"),
    ],
)
def test_an_unsupported_setting_is_refused(name: str, value: str | None) -> None:
    with pytest.raises(ApiError) as refused:
        parse_topic_config({name: value}, DEFAULTS)
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert name in str(refused.value)
