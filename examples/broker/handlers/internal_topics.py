"""Topics that the cluster keeps for itself: clients read them and change nothing in them."""

from examples.broker.controller.cluster_defaults import OFFSETS_TOPIC
from examples.broker.errors import ApiError, ErrorCode


def is_internal(topic: str) -> bool:
    return topic == OFFSETS_TOPIC


def check_not_internal(topic: str) -> None:
    """ApiError INVALID_TOPIC_EXCEPTION for one, as Kafka answers whoever writes to it or cuts it."""
    if is_internal(topic):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic!r} is the cluster's own")
