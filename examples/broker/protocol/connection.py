"""One client's connection. Its requests are answered one at a time, in the order in which they came."""

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from anyio import (
    BrokenResourceError,
    CancelScope,
    EndOfStream,
    create_memory_object_stream,
    create_task_group,
    current_time,
    move_on_after,
    sleep,
)
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from examples.broker.errors import ProtocolError
from examples.broker.metadata import address
from examples.broker.protocol.apis import RequestContext
from examples.broker.protocol.codec import SMALLEST_REQUEST, decode_request, encode_response
from examples.broker.protocol.frames import FrameBuffer
from examples.broker.protocol.gate import Gate

logger = logging.getLogger(__name__)

# Answers a request of one API; both are of the newest version. None means no response (Produce with acks=0).
Handler = Callable[[RequestContext, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of a client, in seconds and bytes, with Kafka's names and defaults where Kafka has them.

    A connection is closed after ``connections_max_idle`` without a whole request. Behind a request in
    progress, the server reads ahead up to ``read_ahead_max_bytes``, which is the largest request of a
    producer with default settings.
    """

    socket_request_max_bytes: int = 100 * 1024 * 1024
    connections_max_idle: float = 600.0
    read_ahead_max_bytes: int = 1024 * 1024


class Connection:
    """Serves the client at the other end of ``stream`` until either side closes the connection.

    The connection reads ahead while a request is in progress, so that it notices a disconnect at once and
    cancels the handler. When ``read_ahead_max_bytes`` of requests wait, it stops reading; then it notices a
    disconnect once it goes on.
    """

    def __init__(
        self, stream: SocketStream, routes: Mapping[int, Handler], gate: Gate, limits: ConnectionLimits
    ) -> None:
        self._stream = stream
        self._routes = routes
        self._gate = gate
        self._limits = limits
        # A client that has disconnected already has no address.
        remote: Any = stream.extra(SocketAttribute.remote_address, ("", 0))
        self._host = str(remote[0])
        self._peer = address(self._host, remote[1])
        self._received = FrameBuffer(SMALLEST_REQUEST, limits.socket_request_max_bytes)
        self._unanswered = 0
        self._read_ahead = 0
        # Closed while the requests read ahead have read_ahead_max_bytes.
        self._read_gate = Gate()
        self._idle_since = current_time()
        self._reading = CancelScope()
        self._in_progress = CancelScope()
        self._serving = CancelScope()
        self._disconnected = False
        self._failure: Exception | None = None

    def __repr__(self) -> str:
        return f"<Connection of {self._peer} with {self._unanswered} unanswered requests>"

    async def serve(self) -> None:
        """Serve until the connection is closed. Nothing that a client does makes it raise."""
        frames, received = create_memory_object_stream[bytes](math.inf)
        try:
            with self._serving:
                async with self._stream, create_task_group() as tasks:
                    tasks.start_soon(self._read, frames)
                    await self._answer(received)
                    tasks.cancel_scope.cancel()
        except Exception as error:
            self._failure = error
        finally:
            self._log_end()

    def finish(self) -> None:
        """Answer the requests that were read, then close the connection."""
        self._reading.cancel()

    def cut(self) -> None:
        """End the connection at once, without answers."""
        self._serving.cancel()

    async def _read(self, frames: MemoryObjectSendStream[bytes]) -> None:
        """Pass requests to ``_answer`` until the client disconnects, is refused or ``finish`` is called."""
        with frames, self._reading:
            try:
                while True:
                    frame = await self._next_frame()
                    self._unanswered += 1
                    self._read_ahead += len(frame)
                    frames.send_nowait(frame)
                    if self._read_ahead >= self._limits.read_ahead_max_bytes:
                        self._read_gate.close()
                    await self._read_gate.passed()
            except (EndOfStream, BrokenResourceError):
                pass
            except ProtocolError as error:
                self._failure = error
            self._disconnected = True
            self._in_progress.cancel()

    async def _next_frame(self) -> bytes:
        while (frame := self._received.take()) is None:
            self._received.feed(await self._next_bytes())
        return frame

    async def _next_bytes(self) -> bytes:
        """Wait for bytes of a request. There is no timeout while another request is in progress."""
        longest = self._limits.connections_max_idle
        while True:
            left = longest if self._unanswered else self._idle_since + longest - current_time()
            if left <= 0:
                raise ProtocolError(f"no whole request came for {longest:g} s")
            with move_on_after(left):
                return await self._stream.receive()

    async def _answer(self, frames: MemoryObjectReceiveStream[bytes]) -> None:
        with frames:
            async for frame in frames:
                self._read_ahead -= len(frame)
                if self._read_ahead < self._limits.read_ahead_max_bytes:
                    self._read_gate.open()
                with CancelScope() as self._in_progress:
                    if self._disconnected:
                        # A handler that does not wait still runs: a producer with acks=0 may send and
                        # disconnect.
                        self._in_progress.cancel()
                    try:
                        await self._answer_one(frame)
                    except ProtocolError as error:
                        self._failure = error
                        return
                self._unanswered -= 1
                self._idle_since = current_time()

    async def _answer_one(self, frame: bytes) -> None:
        context, request = decode_request(frame, self._host)
        handler = self._routes.get(context.api.key)
        if handler is None:
            raise ProtocolError(f"{context.api.name} is not served by this broker")
        await self._gate.passed()
        if self._gate.delay:
            await sleep(self._gate.delay)
        response = await handler(context, request)
        if response is None:
            return
        data = encode_response(context, response)
        await self._gate.passed()
        with move_on_after(self._limits.connections_max_idle):
            # If the client has disconnected, _read notices it, too, and ends the connection.
            with suppress(BrokenResourceError):
                await self._stream.send(data)
            return
        raise ProtocolError(
            f"the client did not read a response within {self._limits.connections_max_idle:g} s"
        )

    def _log_end(self) -> None:
        if isinstance(self._failure, ProtocolError):
            logger.warning("closed the connection of %s: %s", self._peer, self._failure)
        elif self._failure is not None:
            logger.error("closed the connection of %s", self._peer, exc_info=self._failure)
        elif self._disconnected:
            logger.debug("%s has disconnected", self._peer)
        else:
            logger.debug("closed the connection of %s: the broker has ended", self._peer)
