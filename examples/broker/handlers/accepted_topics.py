"""The topics of a request that creates or enlarges topics, without those that are refused at once."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.handlers.internal_topics import check_not_internal
from examples.broker.metadata import TopicImage


class _Topic(Protocol):
    @property
    def name(self) -> str: ...


TopicT = TypeVar("TopicT", bound=_Topic)
AcceptedT = TypeVar("AcceptedT")


def accepted_topics(
    topics: Sequence[TopicT], accept: Callable[[TopicT], AcceptedT]
) -> tuple[list[AcceptedT], dict[str, TopicImage | ApiError]]:
    """Return what ``accept`` makes of each topic, and by name the errors of those that are refused.

    These are the topics for which it raises ApiError, internal topics, and topics that are named twice.
    """
    accepted: list[AcceptedT] = []
    refused: dict[str, TopicImage | ApiError] = {}
    times = Counter(topic.name for topic in topics)
    for topic in topics:
        try:
            if times[topic.name] > 1:
                raise ApiError(ErrorCode.invalid_request, f"{topic.name!r} is in the request more than once")
            # A group's partition depends on the number of partitions of the offsets topic.
            check_not_internal(topic.name)
            accepted.append(accept(topic))
        except ApiError as error:
            refused[topic.name] = error
    return accepted, refused
