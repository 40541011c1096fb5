"""Internal topics, which clients may read but not change."""

from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ApiError, ErrorCode


def is_internal(topic: str) -> bool:
    return topic == OFFSETS_TOPIC


def check_not_internal(topic: str) -> None:
    """Raise ApiError INVALID_TOPIC_EXCEPTION for an internal topic, as Kafka does for a write."""
    if is_internal(topic):
        raise ApiError(ErrorCode.invalid_topic_exception, f"{topic!r} is an internal topic")
