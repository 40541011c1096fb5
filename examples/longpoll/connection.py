"""uvicorn's HTTP connection, and an end to its patience with clients that do not send or do not read.

By itself uvicorn waits for ever for the rest of a request, keeps headers of any length, and holds an answer
until its client takes it. Of requests that are sent before the last one is answered it keeps any number, and
reads nothing more, so that it does not learn when the client leaves; when it does, it tells the last of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from examples.longpoll.limits import Limits
from purgatory import DelayedOperation, Purgatory

UNSENT_BYTES: Final = 4096
"""What the kernel has not taken of an answer may be so much without being waited for."""

READ_AHEAD: Final = 64 * 1024
"""So many bytes may come behind a request that is being answered; then nothing is read until it has been."""

HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


class ClientDeadline(DelayedOperation[None]):
    """Drops a connection whose client does not do its part in time; rests while the server does its own."""

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        super().__init__(seconds)
        self.transport = transport
        self.seconds = seconds

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        self.transport.abort()

    def arm(self, idle: float = 0.0) -> None:
        """From the end of `idle` seconds on, in which the client may do nothing."""
        self.reschedule(idle + self.seconds)

    def rest(self) -> None:
        self.reschedule(None)


class Connection(HttpToolsProtocol):
    """Has the lifespan's state hold `limits`, and the purgatory of `connections`."""

    _in_head = True
    _in_request = True
    _head_bytes = 0
    _received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._limits: Limits = self.app_state["limits"]
        connections: Purgatory = self.app_state["connections"]
        # Each with how many bytes had been received by the end of its head.
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
        # The transport closes, once the client has taken what it has been sent.
        self._deadline.arm()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        if self._in_head:
            # Without the requests before it: within a head there is no blank line.
            self._head_bytes += len(data.rpartition(b"\r\n\r\n")[2])
            if self._head_bytes > self._limits.head_bytes and not self.transport.is_closing():
                self.transport.write(HEAD_TOO_LARGE)
                self.transport.close()
        if self.pipeline and self._received - self._unanswered[0][1] <= READ_AHEAD:
            self.flow.resume_reading()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = self._in_request = True
        self._head_bytes = 0
        if not self.flow.write_paused:
            self._deadline.arm()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if len(self._unanswered) == self._limits.unanswered:
            # uvicorn answers 400 to what the parser cannot go on with, and closes.
            raise ValueError(f"{len(self._unanswered)} requests of this connection are unanswered")
        super().on_headers_complete()
        self._unanswered.append((self.cycle, self._received))

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_request = False
        self._pass_turn()

    def on_response_complete(self) -> None:
        self._unanswered.popleft()
        super().on_response_complete()
        self._pass_turn()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._deadline.arm()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._in_request:
            self._deadline.arm()
        else:
            self._pass_turn()

    def _pass_turn(self) -> None:
        """To the client, whose deadline begins to run, or to the server, while which it rests."""
        if self._in_request or self.flow.write_paused:
            # It is the client's already, and gets no longer by what the server has done meanwhile.
            return
        if self.transport.is_closing():
            self._deadline.arm()
        elif self._unanswered:
            self._deadline.rest()
        else:
            # uvicorn closes idle connections itself, unless anything comes; and closing has no end by itself.
            self._deadline.arm(idle=self.timeout_keep_alive)


def state_for(limits: Limits, connections: Purgatory) -> dict[str, Any]:
    """What the lifespan's state has to hold for `Connection`."""
    return {"limits": limits, "connections": connections}
