"""What handlers refuse, and how a refusal is answered."""

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from typing import Protocol, TypeVar

from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import TopicImage
from examples.broker.protocol.codec import RequestContext

logger = logging.getLogger(__name__)


class _Topic(Protocol):
    @property
    def name(self) -> str: ...


NameT = TypeVar("NameT", bound=Hashable)
TopicT = TypeVar("TopicT", bound=_Topic)
AcceptedT = TypeVar("AcceptedT")


def error_code(outcome: object) -> ErrorCode:
    """Return the code of an ApiError, and ``none`` for any other outcome."""
    return outcome.code if isinstance(outcome, ApiError) else ErrorCode.none


def error_message(outcome: object) -> str | None:
    """Return the message of an ApiError, and None for any other outcome."""
    return str(outcome) if isinstance(outcome, ApiError) else None


def check_not_internal(topic: str) -> None:
    """Raise ApiError INVALID_TOPIC_EXCEPTION for an internal topic, which clients cannot change."""
    if topic == OFFSETS_TOPIC:
        raise ApiError(ErrorCode.invalid_topic_exception, f"{topic!r} is an internal topic")


def repeated(names: Iterable[NameT]) -> Set[NameT]:
    return {name for name, times in Counter(names).items() if times > 1}


def repetition(name: str) -> ApiError:
    """Return the error for what is in a request more than once, and has one answer only."""
    return ApiError(ErrorCode.invalid_request, f"{name!r} is in the request more than once")


def accepted_topics(
    topics: Sequence[TopicT], accept: Callable[[TopicT], AcceptedT]
) -> tuple[list[AcceptedT], dict[str, TopicImage | ApiError]]:
    """Return what ``accept`` makes of each topic, and by name the errors of those that are refused.

    These are the topics for which it raises ApiError, internal topics, and topics that are named twice.
    """
    accepted: list[AcceptedT] = []
    refused: dict[str, TopicImage | ApiError] = {}
    twice = repeated(topic.name for topic in topics)
    for topic in topics:
        try:
            if topic.name in twice:
                raise repetition(topic.name)
            # A group's partition depends on the number of partitions of the offsets topic.
            check_not_internal(topic.name)
            accepted.append(accept(topic))
        except ApiError as error:
            refused[topic.name] = error
    return accepted, refused


def refused_transactions(context: RequestContext, transactional_id: str) -> ApiError:
    """Log that a producer asks for transactions, and return the error for it.

    librdkafka ends ``init_transactions`` at once on this error alone. On others, such as INVALID_REQUEST, it
    retries in silence until its timeout (rd_kafka_txn_handle_FindCoordinator).
    """
    message = f"this broker serves no transactions: produce without transactional.id {transactional_id!r}"
    logger.warning("refused %s: %s", context, message)
    return ApiError(ErrorCode.transactional_id_authorization_failed, message)
