"""Frames in a stream of bytes. A prefix of four bytes has the length of each frame."""

from struct import Struct

from examples.broker.protocol.errors import InvalidFrameSize, OtherProtocol
from examples.broker.protocol.other_protocols import other_protocol

_SIZE = Struct(">i")


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

    @property
    def expected(self) -> int:
        """The size of the frame that is arriving; 0 while its prefix is incomplete."""
        if len(self._received) < _SIZE.size:
            return 0
        (size,) = _SIZE.unpack_from(self._received)
        return int(size)

    def feed(self, data: bytes) -> None:
        self._received += data

    def take(self) -> bytes | None:
        """Return the next frame without its prefix; None while it is incomplete.

        Raises InvalidFrameSize; or OtherProtocol, when the prefix is the beginning of another protocol.
        """
        if len(self._received) < _SIZE.size:
            return None
        size = self.expected
        if not self._smallest <= size <= self._largest:
            if mistake := other_protocol(bytes(self._received[: _SIZE.size])):
                raise OtherProtocol(mistake)
            raise InvalidFrameSize(
                f"a frame of {size} bytes; a frame has {self._smallest} to {self._largest} bytes"
            )
        end = _SIZE.size + size
        if len(self._received) < end:
            return None
        with memoryview(self._received) as received:
            frame = bytes(received[_SIZE.size : end])
        del self._received[:end]
        return frame
