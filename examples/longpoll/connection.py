"""uvicorn's HTTP connection, with a deadline for clients that do not send or do not read.

uvicorn by itself has these gaps:

- It waits for ever for the rest of a request, and for a client to read its answer.
- It accepts a request head of any length, whether the head arrives at once or in pieces.
- It keeps any number of requests that are sent before the last one is answered (pipelining). Then it stops
  reading, and so does not notice that the client leaves. When it notices, it informs only the last request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from examples.longpoll.limits import Limits
from purgatory import DelayedOperation, Purgatory

UNSENT_BYTES: Final = 4096
"""An answer may leave so many bytes unsent before the server waits for the client to read."""

READ_AHEAD: Final = 64 * 1024
"""Bytes that are read behind a request that is not answered yet. Then reading stops until it is answered."""

HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


class ClientDeadline(DelayedOperation[None]):
    """Closes the connection of a client that is too slow. Stop it while the client waits for the server."""

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        super().__init__(seconds)
        self.transport = transport
        self.seconds = seconds

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        self.transport.abort()

    def restart(self, idle: float = 0.0) -> None:
        """Give the client its full time again, after `idle` seconds in which it may do nothing."""
        self.reschedule(idle + self.seconds)

    def stop(self) -> None:
        self.reschedule(None)


class Connection(HttpToolsProtocol):
    """uvicorn's connection within `Limits`. The lifespan's state has to be that of `connection_state`."""

    _in_head = True
    _in_request = True
    _unparsed_bytes = 0
    _parsed_bytes = 0
    _received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._limits: Limits = self.app_state["limits"]
        connections: Purgatory = self.app_state["connections"]
        # Requests in order, each with the number of bytes received until the end of its head.
        self._unanswered: deque[tuple[RequestResponseCycle, int]] = deque()
        self._deadline = ClientDeadline(transport, self._limits.client_timeout)
        if len(self.connections) > self._limits.connections:
            transport.abort()
            return
        transport.set_write_buffer_limits(high=UNSENT_BYTES)
        connections.try_complete_else_watch(self._deadline, [self.client])

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        for cycle, _ in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def eof_received(self) -> None:
        super().eof_received()
        # The transport closes as soon as the client has read everything that was sent.
        self._deadline.restart()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        if self._in_head:
            # The parser keeps a header until it is complete. A head ends with a blank line, so the unfinished
            # head is what follows the last blank line.
            self._unparsed_bytes += len(data.rpartition(b"\r\n\r\n")[2])
            if self._unparsed_bytes > self._limits.head_bytes and not self.transport.is_closing():
                self._refuse_head()
        if self.pipeline and self._received - self._unanswered[0][1] <= READ_AHEAD:
            self.flow.resume_reading()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = self._in_request = True
        self._unparsed_bytes = self._parsed_bytes = 0
        if not self.flow.write_paused:
            self._deadline.restart()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(": \r\n") + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if len(self._unanswered) == self._limits.unanswered:
            # When a parser callback raises, uvicorn answers 400 and closes the connection.
            raise ValueError(f"{len(self._unanswered)} requests of this connection are unanswered")
        super().on_headers_complete()
        self._unanswered.append((self.cycle, self._received))

    def send_400_response(self, msg: str) -> None:
        if self._parsed_bytes > self._limits.head_bytes:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_request = False
        self._update_deadline()

    def on_response_complete(self) -> None:
        self._unanswered.popleft()
        super().on_response_complete()
        self._update_deadline()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._deadline.restart()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._in_request:
            self._deadline.restart()
        else:
            self._update_deadline()

    def _count(self, size: int) -> None:
        self._parsed_bytes += size
        if self._parsed_bytes > self._limits.head_bytes:
            # When a parser callback raises, uvicorn calls `send_400_response`.
            raise ValueError(f"the head has more than {self._limits.head_bytes} bytes")

    def _refuse_head(self) -> None:
        self.transport.write(HEAD_TOO_LARGE)
        self.transport.close()

    def _update_deadline(self) -> None:
        """Stop the deadline while the client waits for the server, and run it while the server waits."""
        if self._in_request or self.flow.write_paused:
            # The deadline runs already, and nothing that the server does extends it.
            return
        if self.transport.is_closing():
            self._deadline.restart()
        elif self._unanswered:
            self._deadline.stop()
        else:
            # uvicorn closes an idle connection after this timeout, but not once any byte has arrived;
            # and a connection that it closes stays open until the client has read everything.
            self._deadline.restart(idle=self.timeout_keep_alive)


def connection_state(limits: Limits, connections: Purgatory) -> dict[str, Any]:
    """The entries that `Connection` needs in the lifespan's state."""
    return {"limits": limits, "connections": connections}
