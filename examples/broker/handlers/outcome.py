"""The outcome of one part of a request, such as a topic, in the terms of kio's messages."""

from examples.broker.errors import ApiError, ErrorCode


def error_code(outcome: object) -> ErrorCode:
    """Return the code of an ApiError, and ``none`` for any other outcome."""
    return outcome.code if isinstance(outcome, ApiError) else ErrorCode.none


def error_message(outcome: object) -> str | None:
    """Return the message of an ApiError, and None for any other outcome."""
    return str(outcome) if isinstance(outcome, ApiError) else None
