"""A connection to a peer: what a follower fetches from its leader over."""

from typing import Final, Self

from anyio import (
    BrokenResourceError,
    ClosedResourceError,
    EndOfStream,
    ResourceGuard,
    aclose_forcefully,
    connect_tcp,
)
from anyio.abc import SocketStream

from examples.broker.protocol.apis import Api, RequestT, ResponseT
from examples.broker.protocol.codec import SMALLEST_RESPONSE, decode_response, encode_request
from examples.broker.protocol.errors import MalformedResponse, ProtocolError
from examples.broker.protocol.frames import FrameBuffer

_RESPONSE_MAX_BYTES: Final = 100 * 1024 * 1024


class PeerConnection:
    """Asks a broker one thing at a time, in the newest versions. To be closed with ``aclose``.

    A request that fails, or is cancelled before its answer is here, closes the connection.
    """

    def __init__(self, stream: SocketStream, peer: str, client_id: str) -> None:
        self._stream = stream
        self._peer = peer
        self._client_id = client_id
        self._correlation_id = 0
        self._received = FrameBuffer(SMALLEST_RESPONSE, _RESPONSE_MAX_BYTES)
        self._guard = ResourceGuard("asking")

    def __repr__(self) -> str:
        return f"<PeerConnection to {self._peer} after {self._correlation_id} requests>"

    @classmethod
    async def open(cls, host: str, port: int, client_id: str) -> Self:
        """Connect. ConnectionError if nobody is there."""
        peer = f"{host}:{port}"
        try:
            return cls(await connect_tcp(host, port), peer, client_id)
        except OSError as error:
            raise ConnectionRefusedError(f"{peer} cannot be reached: {error}") from error

    async def request(self, api: Api[RequestT, ResponseT], request: RequestT) -> ResponseT:
        """What the peer answers. ConnectionError if that is nothing, or nothing that makes sense.

        There is no timeout: give up by cancelling.
        """
        with self._guard:
            try:
                return await self._exchange(api, request)
            except (BrokenResourceError, ClosedResourceError, EndOfStream) as error:
                raise ConnectionResetError(f"the connection to {self._peer} is closed") from error
            except ProtocolError as error:
                raise ConnectionAbortedError(f"{self._peer} answered nonsense: {error}") from error

    async def aclose(self) -> None:
        await aclose_forcefully(self._stream)

    async def _exchange(self, api: Api[RequestT, ResponseT], request: RequestT) -> ResponseT:
        self._correlation_id = (self._correlation_id + 1) % 2**31
        try:
            await self._stream.send(encode_request(api, self._correlation_id, self._client_id, request))
            correlation_id, response = decode_response(api, await self._frame())
            if correlation_id != self._correlation_id:
                raise MalformedResponse(f"it was asked {self._correlation_id} and answered {correlation_id}")
        except BaseException:
            # The answer may still come, and would be taken for that of the next request.
            await self.aclose()
            raise
        return response

    async def _frame(self) -> bytes:
        while (frame := self._received.take()) is None:
            self._received.feed(await self._stream.receive())
        return frame
