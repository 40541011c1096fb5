"""The errors for which a connection is closed."""


class ProtocolError(Exception):
    """Raised when bytes from a connection violate the protocol. The connection is unusable afterwards."""


class InvalidFrameSize(ProtocolError):
    """Raised when a length prefix is shorter than a header, or larger than the limit."""


class OtherProtocol(ProtocolError):
    """Raised when a peer speaks another protocol than Kafka's."""


class UnsupportedApi(ProtocolError):
    """Raised when a request's API key is not served."""


class UnsupportedVersion(ProtocolError):
    """Raised when a request's API is served, but not in the request's version."""


class MalformedRequest(ProtocolError):
    """Raised when a request does not have the format of its API and version."""


class MalformedResponse(ProtocolError):
    """Raised when a response does not have the format of its API, or answers another request."""


class PeerStalled(ProtocolError):
    """Raised when a peer sends no request, or is too slow to send a request or read a response."""
