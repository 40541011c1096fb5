"""The topics that the members of a group subscribe to."""

from struct import Struct
from struct import error as StructError
from typing import Final

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.group import Group, GroupState

CONSUMER: Final = "consumer"
"""The protocol type of consumers. Other clients, such as Kafka Connect, have groups without subscriptions."""
# A member's metadata begin with a version and the number of topics (ConsumerProtocolSubscription).
_VERSION_AND_COUNT: Final = Struct(">hi")
_LENGTH: Final = Struct(">h")


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """Return the topics that members subscribe to; None if that is unknown, as while the group rebalances.

    Raises ApiError NON_EMPTY_GROUP when the members are no consumers.
    """
    if group.state is GroupState.EMPTY:
        return frozenset()
    if group.protocol_type != CONSUMER:
        raise ApiError(ErrorCode.non_empty_group, f"{group!r} has members that are no consumers")
    if group.state is GroupState.PREPARING_REBALANCE:
        return None
    try:
        subscriptions = [_topics(member.metadata(group.protocol_name)) for member in group.members.values()]
    except (StructError, UnicodeDecodeError):
        return None
    return frozenset().union(*subscriptions)


def _topics(metadata: bytes) -> set[str]:
    _, count = _VERSION_AND_COUNT.unpack_from(metadata)
    position = _VERSION_AND_COUNT.size
    topics = set()
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(metadata, position)
        position += _LENGTH.size
        topics.add(metadata[position : position + length].decode())
        position += length
    return topics
