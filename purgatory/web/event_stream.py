"""Server-sent events: a response that goes on, with one operation after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, TypeVar

import anyio
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from purgatory._cancellation import Foreign
from purgatory._core.outcome import OperationState
from purgatory.delayed_operation import DelayedOperation
from purgatory.errors import OperationWithdrawn, PurgatoryClosed, PurgatoryFull, safe_repr
from purgatory.purgatory import Purgatory
from purgatory.web.long_poll import ClientDisconnected, is_refusal, try_again_later
from purgatory.web.server_sent_event import HEARTBEAT, EncodedEvents, ServerSentEvent, encode_events

R = TypeVar("R")

logger: Final = logging.getLogger("purgatory.web")

PAUSE: Final = 15.0
"""The longest time, in seconds, that a stream waits after an operation that has not moved the position."""

HEADERS: Final = {
    "Cache-Control": "no-store",
    # Without it, nginx keeps the events until its buffer is full.
    "X-Accel-Buffering": "no",
}


class EventStream(Response):
    """A response of Starlette and FastAPI that sends events until the client leaves or the purgatory closes.

    `read` makes the operation that waits for the events after an id. It gets the id of the last event that
    was sent. At first it gets the id that the client names in Last-Event-ID, or None if the client names
    none. The operation waits on `keys`, and `events` makes the events of its result. When there are none, the
    stream sends a heartbeat. So the operation's timeout is the time between two heartbeats. A stream that
    waits for its first event begins with a heartbeat.

    When `read` returns None, nothing more will come, and the stream ends. A client that asks again gets a
    204. Browsers ask no more after a 204.

    The id of the last event is the client's position. After an operation that is done before its timeout and
    has no events, or only events that leave the position where it was, the next operation would be done at
    once, too. So the stream logs a warning, and waits as long as the operation's timeout, at most 15 seconds.
    An event without data moves the position, and so avoids the wait.

    The response to a HEAD request is the headers. `read` is called for them, and its operation is dropped.

    The operation is withdrawn as soon as the client disconnects, and the stream ends. A server tells of a
    disconnection by a message. A server of ASGI 2.4 may also raise an OSError when the stream sends.

    While the client reads too slowly, no operation is pending: the stream goes on later, from where it is.
    The stream keeps the events of one result for the client, and the server has its buffer.

    Before the response begins, an HTTPException of `read` or `events` becomes the response. When the
    purgatory is full or closed, the response is a 503 with Retry-After. Later, all of these end the stream,
    and so does other code that withdraws the operation. The client then asks again.

    Other exceptions of `read`, of `events` and of the operation's hooks are raised before the response
    begins, if the first operation is done at once. Later, they break the stream off, after the events that
    were made before them.

    Background tasks, such as FastAPI's BackgroundTasks, run when the stream has ended. They do not run when
    it was broken off.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        purgatory: Purgatory,
        read: Callable[[str | None], DelayedOperation[R] | None],
        keys: Collection[Hashable],
        events: Callable[[R], Iterable[ServerSentEvent]],
        headers: Mapping[str, str] | None = None,
        *,
        # FastAPI documents a route by the signature of its response class.
        status_code: int = HTTPStatus.OK,
    ) -> None:
        self.status_code = status_code
        # FastAPI sets it.
        self.background = None
        self.init_headers({**HEADERS, **(headers or {})})
        self._purgatory = purgatory
        self._read: Callable[[str | None], DelayedOperation[Any] | None] = read
        self._keys = keys
        self._events: Callable[[Any], Iterable[ServerSentEvent]] = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            # A server sends a 403 for it, as for a path that Starlette does not know.
            await WebSocketClose()(scope, receive, send)
            return
        last = last_event_id(scope)
        operation = self._read_after(last)
        if operation is None:
            nothing = Response(status_code=HTTPStatus.NO_CONTENT, background=self.background)
            nothing.raw_headers = [header for header in self.raw_headers if header[0] != b"content-type"]
            await nothing(scope, receive, send)
            return
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        send = noting_disconnections(send)
        with suppress(ClientDisconnected):
            if scope["method"] == "HEAD":
                # Nobody would withdraw an operation: the client has its response, and keeps the connection.
                await send(start)
                await send(body(b"", more=False))
            else:
                await self._stream(self._park(operation), last, start, receive, send)
        if self.background is not None:
            await self.background()

    async def _stream(
        self, operation: DelayedOperation[Any], last: str | None, start: Message, receive: Receive, send: Send
    ) -> None:
        """Send the whole response. `operation` is the first one, which has been offered."""
        first = None
        if operation.done and operation.state is not OperationState.CANCELLED:
            # Raise what there is to raise while the response can still be an error.
            first = self._encode(operation.result(), last)
        try:
            await send(start)
            failure = await self._send_until_disconnected(operation, first, last, receive, send)
        finally:
            operation.cancel()
        if failure is not None:
            raise failure

    async def _send_until_disconnected(
        self,
        operation: DelayedOperation[Any],
        first: EncodedEvents | None,
        last: str | None,
        receive: Receive,
        send: Send,
    ) -> Exception | None:
        """Send all events. Returns the exception that ended them, because the task group would wrap it."""
        failure = None
        listening = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_at_disconnection, receive, listening, tasks.cancel_scope)
            try:
                await self._send_events(operation, first, last, send)
            except Exception as error:
                failure = error
            listening.cancel()
        return failure

    def _read_after(self, last: str | None) -> DelayedOperation[Any] | None:
        """The operation that waits for what comes after `last`."""
        with Foreign("read"):
            operation = self._read(last)
        if operation is not None and operation.timeout is not None and operation.timeout <= 0:
            raise ValueError(
                f"the timeout of {safe_repr(operation)} is the time between two heartbeats of its stream, "
                "so it must be more than 0"
            )
        return operation

    def _park(self, operation: DelayedOperation[Any]) -> DelayedOperation[Any]:
        """Offer `operation` to the purgatory. Raises HTTPException when it is refused."""
        try:
            return self._purgatory.try_complete_else_watch(operation, self._keys)
        except (PurgatoryFull, PurgatoryClosed) as error:
            if not is_refusal(error, operation):
                raise
            raise try_again_later() from error

    def _encode(self, result: Any, last: str | None) -> EncodedEvents:
        with Foreign("events"):
            return encode_events(self._events(result), last)

    async def _send_events(
        self, operation: DelayedOperation[Any], first: EncodedEvents | None, last: str | None, send: Send
    ) -> None:
        """Send the events of `operation` and of the operations after it, and then the end of the response."""
        following: DelayedOperation[Any] | None = operation
        try:
            if not operation.done:
                # Over HTTP/2, nginx keeps the head of a response until there is something of its body. Until
                # then, the client does not know that the stream is open.
                await send(body(HEARTBEAT))
            while following is not None:
                operation = following
                at_once = operation.done
                encoded = first or self._encode(await operation, last)
                moved = encoded.last != last
                first, last = None, encoded.last
                await send(body(encoded.body or HEARTBEAT))
                if encoded.failure is not None:
                    raise encoded.failure
                if not moved and not operation.expired:
                    await self._pause(operation)
                elif at_once:
                    # A client that is far behind must not hold the loop.
                    await asyncio.sleep(0)
                following = self._read_after(last)
                if following is not None:
                    self._park(following)
        except (HTTPException, OperationWithdrawn):
            pass
        await send(body(b"", more=False))

    async def _pause(self, operation: DelayedOperation[Any]) -> None:
        """Wait after `operation`, which has not moved the position, as long as between two heartbeats."""
        seconds = min(operation.timeout or PAUSE, PAUSE)
        logger.warning(
            "%s was done, but its client is where it was, so its stream waits for %g seconds; to move the "
            "position of the client, give each event the position behind it as its id, or send an event "
            "without data",
            safe_repr(operation),
            seconds,
        )
        await self._park(Pause(seconds))


class Pause(DelayedOperation[None]):
    """Ends by its timeout only, or when its purgatory closes."""

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        pass


def body(content: bytes, *, more: bool = True) -> Message:
    """A part of the response, which is the last one without `more`."""
    return {"type": "http.response.body", "body": content, "more_body": more}


def noting_disconnections(send: Send) -> Send:
    """`send` that raises ClientDisconnected for an OSError, by which ASGI 2.4 tells of a disconnection.

    An OSError of `read`, of `events` or of a hook is no disconnection.
    """

    async def noting(message: Message) -> None:
        try:
            await send(message)
        except OSError as error:
            raise ClientDisconnected("the client of a stream has disconnected") from error

    return noting


def last_event_id(scope: Scope) -> str | None:
    """The id that a client names in Last-Event-ID, which is UTF-8."""
    for name, value in scope["headers"]:
        if name == b"last-event-id":
            # uvicorn leaves the space behind a header's value in place.
            return bytes(value).strip().decode(errors="replace")
    return None


async def cancel_at_disconnection(
    receive: Receive, listening: anyio.CancelScope, stream: anyio.CancelScope
) -> None:
    """Cancel `stream` when the client disconnects. The cancellation of `listening` ends this."""
    with listening, Foreign("receive"):
        while (await receive())["type"] != "http.disconnect":
            pass
        stream.cancel()
