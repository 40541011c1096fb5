"""Why a connection is closed by us, or a peer's answer is of no use."""


class ProtocolError(Exception):
    """Raised when what came over a connection breaks the protocol. The connection is of no further use."""


class InvalidFrameSize(ProtocolError):
    """Raised when a length prefix announces less than a header, or more than is taken."""


class UnsupportedApi(ProtocolError):
    """Raised when a request's API key is not served."""


class UnsupportedVersion(ProtocolError):
    """Raised when a request's API is served, but not in its version."""


class MalformedRequest(ProtocolError):
    """Raised when a request is not what its API and version say: cut short, too long, or garbage."""


class MalformedResponse(ProtocolError):
    """Raised when a response is not what was asked for."""


class PeerStalled(ProtocolError):
    """Raised when a peer is silent, or slow to send a request or to take a response, beyond its limit."""
