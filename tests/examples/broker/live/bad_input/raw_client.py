"""A client that speaks bytes, and does not mind being sent away."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from examples.broker.protocol.apis import APIS, Api
from tests.examples.broker.live.live_cluster import PATIENCE
from tests.examples.broker.protocol.wire_messages import read_response, request_frame, with_size


class RawClient:
    """A blocking socket. TimeoutError where a broker neither answers nor hangs up."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    @contextmanager
    def connected(cls, address: tuple[str, int]) -> Iterator[Self]:
        with socket.create_connection(address, PATIENCE) as connected:
            yield cls(connected)

    def send(self, data: bytes) -> None:
        """As far as it is taken."""
        with suppress(ConnectionError):
            self._socket.sendall(data)

    def ask(self, request: Any, *, client_id: str = "raw") -> Any:
        """The response to a request of kio's, which must be of the newest version served."""
        self.send(with_size(request_frame(request, client_id=client_id)))
        return self.response(APIS[request.__api_key__])

    def response(self, api: Api[Any, Any]) -> Any:
        """The next one, of that API's newest version."""
        return read_response(api, api.max_version, with_size(self.frame()))[1]

    def frame(self) -> bytes:
        """The next response."""
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def until_closed(self) -> bytes:
        """What else comes before the broker closes the connection."""
        rest = b""
        with suppress(ConnectionResetError):
            while data := self._socket.recv(1 << 16):
                rest += data
        return rest

    def go(self) -> None:
        self._socket.close()

    def vanish(self) -> None:
        """Go without a farewell, as a process that is killed may: a reset instead of an end."""
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
