"""uvicorn's HTTP connection, and an end to its patience with clients that do not send or do not read.

By itself uvicorn waits for ever for the rest of a request, keeps headers of any length, and holds an answer
until its client takes it. When a client that has sent several requests at once leaves, it tells the last one.
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

    def arm(self) -> None:
        self.reschedule(self.seconds)

    def rest(self) -> None:
        self.reschedule(None)


class Connection(HttpToolsProtocol):
    """Has the lifespan's state hold `limits`, and the purgatory of `connections`."""

    _in_head = True
    _in_request = True
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._limits: Limits = self.app_state["limits"]
        connections: Purgatory = self.app_state["connections"]
        self._unanswered: deque[RequestResponseCycle] = deque()
        self._deadline = ClientDeadline(transport, self._limits.client_timeout)
        if len(self.connections) > self._limits.connections:
            transport.abort()
            return
        transport.set_write_buffer_limits(high=UNSENT_BYTES)
        connections.try_complete_else_watch(self._deadline, [self.client])

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes and not self.transport.is_closing():
                self.transport.write(HEAD_TOO_LARGE)
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = self._in_request = True
        self._head_bytes = 0
        if not self.flow.write_paused:
            self._deadline.arm()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()
        self._unanswered.append(self.cycle)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_request = False
        if not self.flow.write_paused:
            self._deadline.rest()

    def on_response_complete(self) -> None:
        self._unanswered.popleft()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._deadline.arm()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._in_request:
            self._deadline.arm()
        else:
            self._deadline.rest()


def state_for(limits: Limits, connections: Purgatory) -> dict[str, Any]:
    """What the lifespan's state has to hold for `Connection`."""
    return {"limits": limits, "connections": connections}
