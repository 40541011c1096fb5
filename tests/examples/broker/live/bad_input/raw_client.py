"""A client that sends raw bytes, and accepts a closed connection."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from examples.broker.protocol.apis import Api
from examples.broker.protocol.versions import request_class
from tests.examples.broker.live.live_cluster import PATIENCE
from tests.examples.broker.protocol.plain_messages import Plain, message, plain
from tests.examples.broker.protocol.wire_messages import read_response, request_frame, with_size


def frame_of(api: Api, values: dict[str, Plain], version: int | None = None) -> bytes:
    """Return a request with these values in a version, or else in the newest one that is served."""
    return request_frame(message(request_class(api, api.max_version if version is None else version), values))


class RawClient:
    """A blocking socket. Raises TimeoutError when the broker neither answers nor closes the connection."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    @contextmanager
    def connected(cls, address: tuple[str, int]) -> Iterator[Self]:
        with socket.create_connection(address, PATIENCE) as connected:
            yield cls(connected)

    def send(self, frame: bytes) -> None:
        """Send the bytes with their length."""
        self.send_raw(with_size(frame))

    def send_raw(self, data: bytes) -> None:
        """Send the bytes, as far as the broker accepts them."""
        with suppress(ConnectionError):
            self._socket.sendall(data)

    def ask(self, api: Api, values: dict[str, Plain], version: int | None = None) -> Plain:
        """Return the response to a request."""
        self.send(frame_of(api, values, version))
        return self.response(api, version)

    def response(self, api: Api, version: int | None = None) -> Plain:
        """Return the next response."""
        version = api.max_version if version is None else version
        size = self._exactly(4)
        data = size + self._exactly(int.from_bytes(size, "big"))
        return plain(read_response(api, version, data)[1])

    def until_closed(self) -> bytes:
        """Wait until the broker closes the connection; return the bytes that come before."""
        rest = b""
        with suppress(ConnectionResetError):
            while data := self._socket.recv(1 << 16):
                rest += data
        return rest

    def go(self) -> None:
        self._socket.close()

    def vanish(self) -> None:
        """Reset the connection, as a killed process may, instead of closing it."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            data = self._socket.recv(size - len(received))
            if not data:
                raise EOFError(f"the connection was closed after {len(received)} of {size} bytes")
            received += data
        return bytes(received)
