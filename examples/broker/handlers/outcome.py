"""The outcome of one part of a request, such as a topic, in the terms of kio's messages."""

from kio.schema.errors import ErrorCode as WireErrorCode

from examples.broker.errors import ApiError


def error_code(outcome: object) -> WireErrorCode:
    """Return the code of an ApiError, and ``none`` for any other outcome."""
    return WireErrorCode(outcome.code) if isinstance(outcome, ApiError) else WireErrorCode.none


def error_message(outcome: object) -> str | None:
    """Return the message of an ApiError, and None for any other outcome."""
    return str(outcome) if isinstance(outcome, ApiError) else None
