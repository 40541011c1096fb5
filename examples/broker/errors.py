"""The errors of a broker: the codes of its responses are kio's."""

from typing import Final

from kio.schema.errors import ErrorCode

__all__ = ("ApiError", "ErrorCode", "ProtocolError")

_LONGEST_MESSAGE: Final = 1000


class ApiError(Exception):
    """Raised when a request, or one part of it, cannot be served. The response has the ``code``.

    Some responses have the message, too. It begins with Kafka's name of the code, and is cut to
    ``_LONGEST_MESSAGE`` characters, since the protocol limits its length.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(f"{code.name.upper()}: {message}"[:_LONGEST_MESSAGE])
        self.code = code


class ProtocolError(Exception):
    """Raised when a connection cannot go on, and is closed: the peer violates the protocol, or stalls."""
