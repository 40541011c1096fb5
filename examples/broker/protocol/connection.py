"""One client's connection: its requests are answered one at a time, in the order they came."""

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
)
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from examples.broker.protocol.codec import (
    SMALLEST_REQUEST,
    RequestContext,
    decode_request,
    encode_response,
)
from examples.broker.protocol.errors import PeerStalled, ProtocolError, UnsupportedApi
from examples.broker.protocol.frames import FrameBuffer
from examples.broker.protocol.gate import Gate

logger = logging.getLogger(__name__)

# What answers a request of one API, both of the newest version; None is not sent (Produce with acks=0).
Handler = Callable[[RequestContext, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a client may take up; seconds and bytes. Kafka's names and defaults where it has them.

    ``connections_max_idle`` is how long a connection may be without a request, ``request_read_timeout`` how
    long a request may take to arrive once it began to. ``read_ahead_max_bytes`` is what may wait behind a
    request in progress before no more is read: the most that a producer sends in one, by its default.
    """

    socket_request_max_bytes: int = 100 * 1024 * 1024
    connections_max_idle: float = 600.0
    request_read_timeout: float = 30.0
    read_ahead_max_bytes: int = 1024 * 1024
    max_connections: int = 10_000


class Connection:
    """Serves the client at the other end of ``stream`` until either side has enough.

    A connection reads on while a request is in progress, so that the client's going is noticed at once: the
    handler is cancelled. It reads on until ``read_ahead_max_bytes`` of requests wait; then the client is held
    back, and its going is noticed when one of these is begun.
    """

    def __init__(
        self, stream: SocketStream, routes: Mapping[int, Handler], gate: Gate, limits: ConnectionLimits
    ) -> None:
        self._stream = stream
        self._routes = routes
        self._gate = gate
        self._limits = limits
        # A client that has gone already has no address.
        address: Any = stream.extra(SocketAttribute.remote_address, ("", 0))
        self._host = str(address[0])
        self._peer = f"{address[0]}:{address[1]}"
        self._received = FrameBuffer(SMALLEST_REQUEST, limits.socket_request_max_bytes)
        self._unanswered = 0
        self._read_ahead = 0
        # Closed while too much is read ahead.
        self._room = Gate()
        self._idle_since = current_time()
        self._reading = CancelScope()
        self._in_progress = CancelScope()
        self._client_gone = False

    def __repr__(self) -> str:
        return f"<Connection of {self._peer} with {self._unanswered} requests to answer>"

    async def serve(self) -> None:
        """Return once the connection is closed. Nothing a client does raises."""
        frames, taken = create_memory_object_stream[bytes](math.inf)
        try:
            async with self._stream, create_task_group() as tasks:
                tasks.start_soon(self._read, frames)
                await self._answer(taken)
                tasks.cancel_scope.cancel()
        except Exception:
            logger.exception("closed the connection of %s", self._peer)

    def finish(self) -> None:
        """Answer what has been read, and close: at once if that is nothing."""
        self._reading.cancel()

    async def _read(self, frames: MemoryObjectSendStream[bytes]) -> None:
        """Hand requests to ``_answer`` until the client is gone or sent away, or ``finish`` ends it."""
        with frames, self._reading:
            try:
                while True:
                    frame = await self._next_frame()
                    self._unanswered += 1
                    self._read_ahead += len(frame)
                    frames.send_nowait(frame)
                    if self._read_ahead >= self._limits.read_ahead_max_bytes:
                        self._room.close()
                    await self._room.passed()
            except (EndOfStream, BrokenResourceError):
                logger.debug("%s is gone", self._peer)
            except ProtocolError as error:
                self._log_refusal(error)
            self._client_gone = True
            self._in_progress.cancel()

    async def _next_frame(self) -> bytes:
        if not self._received:
            self._received.feed(await self._first_bytes())
        frame = self._received.take()
        if frame is not None:
            return frame
        with move_on_after(self._limits.request_read_timeout):
            while frame is None:
                self._received.feed(await self._stream.receive())
                frame = self._received.take()
            return frame
        raise PeerStalled(f"a request did not arrive within {self._limits.request_read_timeout:g} s")

    async def _first_bytes(self) -> bytes:
        """What begins a request, however long it takes while another is in progress."""
        longest = self._limits.connections_max_idle
        while True:
            left = longest if self._unanswered else self._idle_since + longest - current_time()
            if left <= 0:
                raise PeerStalled(f"no request came for {longest:g} s")
            with move_on_after(left):
                return await self._stream.receive()

    async def _answer(self, frames: MemoryObjectReceiveStream[bytes]) -> None:
        with frames:
            async for frame in frames:
                self._read_ahead -= len(frame)
                if self._read_ahead < self._limits.read_ahead_max_bytes:
                    self._room.open()
                with CancelScope() as self._in_progress:
                    if self._client_gone:
                        # What needs no waiting is still done: with acks=0, a producer may send, close and go.
                        self._in_progress.cancel()
                    try:
                        await self._answer_one(frame)
                    except ProtocolError as error:
                        self._log_refusal(error)
                        return
                self._unanswered -= 1
                self._idle_since = current_time()

    async def _answer_one(self, frame: bytes) -> None:
        context, request = decode_request(frame, self._host)
        handler = self._routes.get(context.api.key)
        if handler is None:
            raise UnsupportedApi(f"{context.api.name} is not served by this broker")
        await self._gate.passed()
        response = await handler(context, request)
        if response is None:
            return
        data = encode_response(context, response)
        await self._gate.passed()
        with move_on_after(self._limits.connections_max_idle):
            # If the client is gone, _read learns of it as well, and ends the rest.
            with suppress(BrokenResourceError):
                await self._stream.send(data)
            return
        raise PeerStalled(f"a response was not taken within {self._limits.connections_max_idle:g} s")

    def _log_refusal(self, cause: ProtocolError) -> None:
        logger.warning("closed the connection of %s: %s", self._peer, cause)
