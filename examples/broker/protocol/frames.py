"""Frames in a stream of bytes. A prefix of four bytes has the length of each frame."""

from struct import Struct
from typing import Final

from examples.broker.errors import ProtocolError

_SIZE = Struct(">i")
_TLS_HANDSHAKE: Final = b"\x16\x03"
# The first four bytes of each method. An HTTP/2 client that expects nothing else begins with "PRI ".
_HTTP_METHODS: Final = frozenset(
    (b"CONN", b"DELE", b"GET ", b"HEAD", b"OPTI", b"PATC", b"POST", b"PRI ", b"PUT ", b"TRAC")
)


class FrameBuffer:
    """Buffers received bytes, and returns them as frames. A length prefix reserves no memory."""

    def __init__(self, smallest: int, largest: int) -> None:
        self._received = bytearray()
        self._smallest = smallest
        self._largest = largest

    def __repr__(self) -> str:
        return f"<FrameBuffer of {len(self._received)} bytes>"

    def __len__(self) -> int:
        return len(self._received)

    def feed(self, data: bytes) -> None:
        self._received += data

    def take(self) -> bytes | None:
        """Return the next frame without its prefix; None while it is incomplete.

        Raises ProtocolError for a size out of range. Its message names the protocol that a client speaks by
        mistake.
        """
        if len(self._received) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(self._received)
        if not self._smallest <= size <= self._largest:
            raise ProtocolError(
                _other_protocol(bytes(self._received[: _SIZE.size]))
                or f"a frame of {size} bytes; a frame has {self._smallest} to {self._largest} bytes"
            )
        end = _SIZE.size + size
        if len(self._received) < end:
            return None
        with memoryview(self._received) as received:
            frame = bytes(received[_SIZE.size : end])
        del self._received[:end]
        return frame


def _other_protocol(start: bytes) -> str | None:
    """Return what is wrong with a connection that begins with these four bytes; None if they say nothing.

    Read as the length of a frame, each is more than 300 MB.
    """
    if start.startswith(_TLS_HANDSHAKE):
        return "it begins a TLS handshake, but this port has no TLS; set security.protocol to PLAINTEXT"
    if start in _HTTP_METHODS:
        return "it sends an HTTP request, but this port speaks Kafka's protocol; use a Kafka client"
    return None
