"""Server-sent events: a response that goes on, with one operation after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

import anyio
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from purgatory._cancellation import Foreign
from purgatory._core.outcome import OperationState
from purgatory.delayed_operation import DelayedOperation
from purgatory.errors import OperationWithdrawn, PurgatoryClosed, PurgatoryFull, safe_repr
from purgatory.purgatory import Purgatory
from purgatory.web.long_poll import is_refusal, try_again_later
from purgatory.web.server_sent_event import HEARTBEAT, ServerSentEvent

R = TypeVar("R")

HEADERS: Final = {
    "Cache-Control": "no-store",
    # nginx would keep the events until its buffer is full.
    "X-Accel-Buffering": "no",
}


class EventStream(Response):
    """A response of Starlette and FastAPI that sends events until the client leaves or the purgatory closes.

    `read` makes the operation that waits for what comes after an id: after the last one that was sent, after
    the one that the client names in Last-Event-ID, or, with None, from the beginning. The operation waits on
    `keys`. `events` makes the events of its result. Where there are none, a heartbeat is sent. So the
    operation's timeout is the time between two heartbeats. A stream whose first event is still to come begins
    with a heartbeat.

    When `read` returns None, there is nothing more to come, and the stream ends. A client that asks again
    gets a 204, after which a browser asks no more.

    The operation is withdrawn as soon as the client disconnects. While the client reads too slowly, no
    operation is pending: the stream goes on later, from where it is. Nothing is kept for the client but the
    events of one result, and what the server buffers.

    Before the first event, an HTTPException of `read` is the response, and so is a 503 with Retry-After when
    the purgatory is full or closed. Later, these end the stream, and so does a withdrawal by other code. The
    client then asks again. Other exceptions of `read`, of `events` and of the operation's hooks break it off.

    Background tasks, such as FastAPI's BackgroundTasks, run when the stream has ended, but not when it was
    broken off.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        purgatory: Purgatory,
        read: Callable[[str | None], DelayedOperation[R] | None],
        keys: Collection[Hashable],
        events: Callable[[R], Iterable[ServerSentEvent]],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status_code = HTTPStatus.OK
        # FastAPI sets it.
        self.background = None
        self.init_headers({**HEADERS, **(headers or {})})
        self._purgatory = purgatory
        self._read: Callable[[str | None], DelayedOperation[Any] | None] = read
        self._keys = keys
        self._events: Callable[[Any], Iterable[ServerSentEvent]] = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        last = last_event_id(scope)
        operation = self._offer(last)
        if operation is None:
            nothing = Response(status_code=HTTPStatus.NO_CONTENT, background=self.background)
            await nothing(scope, receive, send)
            return
        if operation.state is OperationState.FAILED:
            # Raise it while the response can still be an error.
            operation.result()
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            failure = await self._send_until_disconnected(operation, last, receive, send)
        finally:
            operation.cancel()
        if failure is not None:
            raise failure
        if self.background is not None:
            await self.background()

    async def _send_until_disconnected(
        self, operation: DelayedOperation[Any], last: str | None, receive: Receive, send: Send
    ) -> Exception | None:
        """Send all events. Returns what they raise, because the task group would wrap it."""
        failure = None
        listening = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_at_disconnection, receive, listening, tasks.cancel_scope)
            try:
                await self._send_events(operation, last, send)
            except Exception as error:
                failure = error
            listening.cancel()
        return failure

    def _offer(self, last: str | None) -> DelayedOperation[Any] | None:
        """Offer the operation that waits for what comes after `last`. Raises HTTPException when refused."""
        with Foreign("read"):
            operation = self._read(last)
        if operation is None:
            return None
        if operation.timeout is not None and operation.timeout <= 0:
            raise ValueError(
                f"the timeout of {safe_repr(operation)} is the time between two heartbeats of its stream, "
                "so it must be more than 0"
            )
        try:
            return self._purgatory.try_complete_else_watch(operation, self._keys)
        except (PurgatoryFull, PurgatoryClosed) as error:
            if not is_refusal(error, operation):
                raise
            raise try_again_later() from error

    async def _send_events(
        self, operation: DelayedOperation[Any] | None, last: str | None, send: Send
    ) -> None:
        """Send the events of `operation` and of those that follow it, and then the end of the response."""
        try:
            if operation is not None and not operation.done:
                # Over HTTP/2, nginx keeps the head of a response until there is something of its body. Until
                # then, the client does not know that the stream is open.
                await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
            while operation is not None:
                at_once = operation.done
                result = await operation
                with Foreign("events"):
                    batch = list(self._events(result))
                if batch:
                    last = batch[-1].id
                body = b"".join(event.encode() for event in batch) or HEARTBEAT
                await send({"type": "http.response.body", "body": body, "more_body": True})
                if at_once:
                    # A client that is far behind must not hold the loop.
                    await asyncio.sleep(0)
                operation = self._offer(last)
        except (HTTPException, OperationWithdrawn):
            pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def last_event_id(scope: Scope) -> str | None:
    """The id that a client names in Last-Event-ID, which is UTF-8."""
    for name, value in scope["headers"]:
        if name == b"last-event-id":
            return bytes(value).decode(errors="replace")
    return None


async def cancel_at_disconnection(
    receive: Receive, listening: anyio.CancelScope, stream: anyio.CancelScope
) -> None:
    """Cancel `stream` when the client disconnects. Cancelling `listening` ends this before."""
    with listening, Foreign("receive"):
        while (await receive())["type"] != "http.disconnect":
            pass
        stream.cancel()
