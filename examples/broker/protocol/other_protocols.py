"""The protocols that a client speaks by mistake, and their first bytes."""

from typing import Final

_TLS_HANDSHAKE: Final = b"\x16\x03"
# The first four bytes of each method. An HTTP/2 client that expects nothing else begins with "PRI ".
_HTTP_METHODS: Final = frozenset(
    (b"CONN", b"DELE", b"GET ", b"HEAD", b"OPTI", b"PATC", b"POST", b"PRI ", b"PUT ", b"TRAC")
)


def other_protocol(start: bytes) -> str | None:
    """Return what is wrong with a connection that begins with these four bytes; None if they say nothing.

    Read as the length of a frame, each is more than 300 MB.
    """
    if start.startswith(_TLS_HANDSHAKE):
        return "it begins a TLS handshake, but this port has no TLS; set security.protocol to PLAINTEXT"
    if start in _HTTP_METHODS:
        return "it sends an HTTP request, but this port speaks Kafka's protocol; use a Kafka client"
    return None
