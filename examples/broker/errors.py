"""The error codes a broker answers with, by the names and numbers of Kafka's ``Errors``."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """What became of one partition of a request."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21


class ApiError(Exception):
    """Raised when one partition of a request cannot be served; ``code`` is what the client is told."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
