"""A connection to another broker, over which a follower fetches from its leader."""

from typing import Any, Final, Self

from anyio import (
    BrokenResourceError,
    ClosedResourceError,
    EndOfStream,
    ResourceGuard,
    aclose_forcefully,
    connect_tcp,
)
from anyio.abc import SocketStream

from examples.broker.errors import ProtocolError
from examples.broker.metadata import address
from examples.broker.protocol.apis import Api
from examples.broker.protocol.codec import SMALLEST_RESPONSE, decode_response, encode_request
from examples.broker.protocol.frames import FrameBuffer

_RESPONSE_MAX_BYTES: Final = 100 * 1024 * 1024


class PeerConnection:
    """Sends one request at a time to a broker, in the newest versions. Close it with ``aclose``.

    A request that fails, or is cancelled before its response arrives, closes the connection.
    """

    def __init__(self, stream: SocketStream, peer: str, client_id: str) -> None:
        self._stream = stream
        self._peer = peer
        self._client_id = client_id
        self._correlation_id = 0
        self._received = FrameBuffer(SMALLEST_RESPONSE, _RESPONSE_MAX_BYTES)
        self._guard = ResourceGuard("sending a request over")

    def __repr__(self) -> str:
        return f"<PeerConnection to {self._peer} after {self._correlation_id} requests>"

    @classmethod
    async def open(cls, host: str, port: int, client_id: str) -> Self:
        """Connect to a broker. Raises ConnectionError when it cannot be reached."""
        peer = address(host, port)
        try:
            return cls(await connect_tcp(host, port), peer, client_id)
        except OSError as error:
            raise ConnectionRefusedError(f"{peer} cannot be reached: {error}") from error

    async def request(self, api: Api, request: Any) -> Any:
        """Send a request, and return the response. There is no timeout: cancel the call to give up.

        Raises ConnectionError when there is no response, or an invalid one.
        """
        with self._guard:
            try:
                return await self._exchange(api, request)
            except (BrokenResourceError, ClosedResourceError, EndOfStream) as error:
                raise ConnectionResetError(f"the connection to {self._peer} is closed") from error
            except ProtocolError as error:
                raise ConnectionAbortedError(f"{self._peer} sent an invalid response: {error}") from error

    async def aclose(self) -> None:
        await aclose_forcefully(self._stream)

    async def _exchange(self, api: Api, request: Any) -> Any:
        self._correlation_id = (self._correlation_id + 1) % 2**31
        try:
            await self._stream.send(encode_request(api, self._correlation_id, self._client_id, request))
            while (frame := self._received.take()) is None:
                self._received.feed(await self._stream.receive())
            correlation_id, response = decode_response(api, frame)
            if correlation_id != self._correlation_id:
                raise ProtocolError(
                    f"the request had correlation id {self._correlation_id}, the response {correlation_id}"
                )
        except BaseException:
            # The response may still come, and the next request would take it for its own.
            await self.aclose()
            raise
        return response
