"""A client that sends raw bytes, and accepts a closed connection."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from examples.broker.protocol.apis import APIS, Api
from tests.examples.broker.live.live_cluster import PATIENCE
from tests.examples.broker.protocol.wire_messages import read_response, request_frame, with_size


class RawClient:
    """A blocking socket. Raises TimeoutError when the broker neither answers nor closes the connection."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    @contextmanager
    def connected(cls, address: tuple[str, int]) -> Iterator[Self]:
        with socket.create_connection(address, PATIENCE) as connected:
            yield cls(connected)

    def send(self, data: bytes) -> None:
        """Send the bytes, as far as the broker accepts them."""
        with suppress(ConnectionError):
            self._socket.sendall(data)

    def ask(self, request: Any, *, client_id: str = "raw") -> Any:
        """Return the response to a kio request of the newest version that is served."""
        self.send(with_size(request_frame(request, client_id=client_id)))
        return self.response(APIS[request.__api_key__])

    def response(self, api: Api[Any, Any]) -> Any:
        """Return the next response, in the API's newest version."""
        return read_response(api, api.max_version, with_size(self.frame()))[1]

    def frame(self) -> bytes:
        """Return the next response as bytes."""
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

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
