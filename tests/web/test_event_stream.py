"""A stream sends the events of one operation after the other, until its client or the purgatory ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import BackgroundTasks, FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from purgatory import DelayedOperation, Purgatory
from purgatory.errors import PurgatoryNotOpen
from purgatory.testing import VirtualTimeLoop
from purgatory.web import EventStream, ServerSentEvent
from tests.operations import Gate, a_few_turns, raising
from tests.web.poll_client import DISCONNECT, parked, until
from tests.web.stream_client import DelayedRead, Log, StreamClient, events


@pytest.fixture
def log(purgatory: Purgatory) -> Log:
    return Log(purgatory)


async def answered(client: StreamClient, stream: ASGIApp) -> None:
    """Run the stream to its end."""
    await client.request(stream)
    assert client.complete


async def test_each_record_is_an_event_as_soon_as_it_is_there(log: Log) -> None:
    log.append("a")
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    assert client.body == b"id: 1\ndata: a\n\n"
    log.append("b")
    await parked(log.purgatory, client)
    assert client.body == b"id: 1\ndata: a\n\nid: 2\ndata: b\n\n"
    assert not client.complete
    await log.purgatory.aclose()
    await task


async def test_a_websocket_is_refused_and_nothing_is_read(log: Log) -> None:
    log.append("a")
    application = Starlette(routes=[Mount("/events", log.stream())])
    client = StreamClient()
    client.scope |= {"type": "websocket", "path": "/events/"}
    del client.scope["method"]
    await client.request(application)
    # Before it is accepted, a server answers its handshake with a 403.
    assert [message["type"] for message in client.sent] == ["websocket.close"]
    assert log.purgatory.statistics().completed == 0


async def test_a_stream_without_an_event_yet_begins_with_a_comment(log: Log) -> None:
    """nginx, over HTTP/2, would keep the head of the response, and the client would wait for it."""
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    assert client.body == b":\n\n"
    log.append("a")
    await parked(log.purgatory, client)
    assert client.body == b":\n\nid: 1\ndata: a\n\n"
    await log.purgatory.aclose()
    await task


async def test_proxies_and_caches_are_told_to_pass_the_events_on(log: Log) -> None:
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    assert client.status == 200
    assert client.headers == {
        b"content-type": b"text/event-stream; charset=utf-8",
        b"cache-control": b"no-store",
        b"x-accel-buffering": b"no",
    }
    await log.purgatory.aclose()
    await task


async def test_headers_of_the_caller_are_added_and_replace_the_usual_ones(purgatory: Purgatory) -> None:
    headers = {"Cache-Control": "no-cache", "Vary": "Cookie"}
    stream = EventStream(purgatory, Log(purgatory).read, ["log"], events, headers)
    assert (stream.headers["Cache-Control"], stream.headers["Vary"]) == ("no-cache", "Cookie")
    assert stream.headers["X-Accel-Buffering"] == "no"


async def test_a_client_that_names_its_last_event_gets_those_that_follow(log: Log) -> None:
    for record in "abc":
        log.append(record)
    client = StreamClient((b"last-modified", b"0"), (b"last-event-id", b"2"))
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    assert client.body == b"id: 3\ndata: c\n\n"
    await log.purgatory.aclose()
    await task


@pytest.mark.parametrize(
    ("sent", "read"),
    [("\u00e9\u20ac".encode(), "\u00e9\u20ac"), (b"a\xff", "a\N{REPLACEMENT CHARACTER}"), (b"7 \t", "7")],
)
async def test_the_last_id_is_utf_8_without_the_space_around_it(
    purgatory: Purgatory, sent: bytes, read: str
) -> None:
    named: list[str | None] = []
    client = StreamClient((b"last-event-id", sent))
    await answered(client, EventStream(purgatory, named.append, ["key"], events))
    assert named == [read]


async def test_a_heartbeat_is_sent_whenever_the_timeout_is_over(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        log, client = Log(purgatory), StreamClient()
        task = client.request(log.stream())
        await asyncio.sleep(31)
        log.append("a")
        await asyncio.sleep(14)
        assert client.body == b":\n\n" * 3 + b"id: 1\ndata: a\n\n"
        await asyncio.sleep(2)
        assert client.body.endswith(b"data: a\n\n:\n\n")
        await purgatory.aclose()
        await task


async def test_a_disconnection_withdraws_the_operation_and_ends_the_stream(log: Log) -> None:
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    client.send(DISCONNECT)
    await task
    statistics = log.purgatory.statistics()
    assert (statistics.cancelled, statistics.pending, statistics.keys) == (1, 0, 0)


@pytest.mark.parametrize("code", ["read", "events"])
async def test_a_stream_whose_code_reads_something_cancelled_is_broken_off_by_an_error(
    log: Log, code: str
) -> None:
    client = StreamClient()

    def read(last: str | None) -> DelayedRead:
        if last is not None and code == "read":
            raise asyncio.CancelledError
        return log.read(last)

    def read_events(page: tuple[int, list[str]]) -> Iterator[ServerSentEvent]:
        if code == "events":
            raise asyncio.CancelledError
        return events(page)

    task = client.request(EventStream(log.purgatory, read, ["log"], read_events))
    await parked(log.purgatory, client)
    log.append("a")
    with pytest.raises(RuntimeError, match=f"^{code} raised CancelledError: something that it reads was"):
        await task
    assert not client.complete
    assert log.purgatory.statistics().pending == 0


async def test_a_stream_whose_first_read_reads_something_cancelled_raises_before_the_response(
    log: Log,
) -> None:
    client = StreamClient()
    task = client.request(
        EventStream(log.purgatory, lambda _: raising(asyncio.CancelledError())(), [], events)
    )
    with pytest.raises(RuntimeError, match=r"^read raised CancelledError: "):
        await task
    assert client.sent == []


async def test_a_receive_that_awaits_something_cancelled_breaks_a_stream_off_by_an_error(log: Log) -> None:
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    client.send(asyncio.CancelledError())
    with pytest.raises(ExceptionGroup) as caught:
        await task
    assert "receive raised CancelledError" in str(caught.value.exceptions[0])
    assert log.purgatory.statistics().pending == 0


async def test_a_cancellation_withdraws_the_operation(log: Log) -> None:
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log.purgatory.statistics().cancelled == 1


async def test_a_cancellation_before_the_response_has_begun_withdraws_the_operation(log: Log) -> None:
    client = StreamClient()
    client.reads.clear()
    task = client.request(log.stream())
    await until(lambda: log.purgatory.statistics().pending)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log.purgatory.statistics().cancelled == 1


async def test_while_a_client_reads_too_slowly_nothing_waits_and_nothing_is_lost(log: Log) -> None:
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    client.reads.clear()
    for record in "abcde":
        log.append(record)
    await a_few_turns()
    assert log.purgatory.statistics().pending == 0
    # The head, and the heartbeat at the start.
    assert len(client.sent) == 2
    client.reads.set()
    await parked(log.purgatory, client)
    assert [len(message["body"].split(b"\n\n")) - 1 for message in client.sent[2:]] == [1, 2, 2]
    assert client.body.count(b"id: ") == 5
    await log.purgatory.aclose()
    await task


async def test_a_client_that_leaves_while_it_does_not_read_ends_the_stream(log: Log) -> None:
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    client.reads.clear()
    log.append("a")
    await a_few_turns()
    client.send(DISCONNECT)
    await task
    assert log.purgatory.statistics().pending == 0


async def test_a_client_that_is_far_behind_does_not_hold_the_loop(log: Log) -> None:
    for number in range(100):
        log.append(str(number))
    client = StreamClient()
    task = client.request(log.stream())
    turns = 0
    while log.purgatory.statistics().pending == 0:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 50
    await log.purgatory.aclose()
    await task


async def test_closing_the_purgatory_sends_what_there_is_and_ends_the_stream(log: Log) -> None:
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    log.records.append("farewell")
    await log.purgatory.aclose()
    await task
    assert client.body == b":\n\nid: 1\ndata: farewell\n\n"
    assert client.complete


async def test_a_stream_that_is_refused_later_ends(log: Log) -> None:
    async with Purgatory(max_pending=1) as purgatory:
        log, client = Log(purgatory), StreamClient()
        task = client.request(log.stream())
        await parked(purgatory, client)
        client.reads.clear()
        log.append("a")
        await a_few_turns()
        purgatory.try_complete_else_watch(Gate(), ["other"])
        client.reads.set()
        await task
        assert client.body == b":\n\nid: 1\ndata: a\n\n"
        assert client.complete


async def test_a_stream_whose_operation_others_withdraw_ends(log: Log) -> None:
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    log.purgatory.cancel_for_key("log")
    await task
    assert client.complete


async def test_a_stream_ends_when_there_is_nothing_more_to_come(log: Log) -> None:
    def read(last: str | None) -> DelayedRead | None:
        return None if last == "2" else log.read(last)

    for record in "ab":
        log.append(record)
    stream = EventStream(log.purgatory, read, ["log"], events)
    client, again = StreamClient(), StreamClient((b"last-event-id", b"2"))
    await answered(client, stream)
    assert client.body == b"id: 1\ndata: a\n\nid: 2\ndata: b\n\n"
    await answered(again, stream)
    assert again.status == 204


async def test_the_response_that_says_that_nothing_is_to_come_has_the_headers_of_the_stream(
    purgatory: Purgatory,
) -> None:
    stream = EventStream(purgatory, lambda last: None, ["log"], events, {"Vary": "Cookie"})
    stream.set_cookie("session", "7")
    client = StreamClient()
    await client.request(stream)
    assert client.status == 204
    assert client.headers.keys() == {b"cache-control", b"x-accel-buffering", b"vary", b"set-cookie"}


async def test_an_event_without_data_moves_the_position_only(log: Log) -> None:
    def without_data(page: tuple[int, list[str]]) -> list[ServerSentEvent]:
        offset, records = page
        return [ServerSentEvent(str(offset + len(records)))]

    log.append("secret")
    client = StreamClient()
    task = client.request(EventStream(log.purgatory, log.read, ["log"], without_data))
    await parked(log.purgatory, client)
    assert client.body == b"id: 1\n\n"
    await log.purgatory.aclose()
    await task


async def test_a_timeout_of_zero_is_refused_because_heartbeats_would_never_pause(log: Log) -> None:
    stream = EventStream(log.purgatory, lambda last: DelayedRead(log, 0, timeout=0), ["log"], events)
    with pytest.raises(ValueError, match="time between two heartbeats"):
        await StreamClient().request(stream)


async def test_a_bare_string_as_keys_is_refused(log: Log) -> None:
    with pytest.raises(TypeError, match="keys"):
        await StreamClient().request(EventStream(log.purgatory, log.read, "log", events))


async def test_an_operation_without_a_timeout_sends_no_heartbeats(virtual_time: VirtualTimeLoop) -> None:
    def read(last: str | None) -> DelayedOperation[str]:
        return Gate(None)

    async with Purgatory() as purgatory:
        client = StreamClient()
        task = client.request(EventStream(purgatory, read, ["log"], lambda name: []))
        await asyncio.sleep(3600)
        # The comment at the start.
        assert client.body == b":\n\n"
        await purgatory.aclose()
        await task


async def test_an_exception_of_the_first_operation_is_raised_before_the_response_begins(
    purgatory: Purgatory,
) -> None:
    def read(last: str | None) -> DelayedOperation[str]:
        return Gate(15, trying=raising(ArithmeticError("broken")))

    client = StreamClient()
    with pytest.raises(ArithmeticError, match="broken"):
        await client.request(EventStream(purgatory, read, ["key"], lambda name: []))
    assert client.sent == []


def breaking(page: tuple[int, list[str]]) -> Iterator[ServerSentEvent]:
    """Events of which "broken" is none."""
    for event in events(page):
        if event.data == "broken":
            raise ArithmeticError("broken")
        yield event


async def test_an_exception_of_events_at_once_is_raised_before_the_response_begins(log: Log) -> None:
    log.append("broken")
    client = StreamClient()
    with pytest.raises(ArithmeticError, match="broken"):
        await client.request(EventStream(log.purgatory, log.read, ["log"], breaking))
    assert client.sent == []


async def test_what_is_no_event_is_an_error_before_the_response_begins(log: Log) -> None:
    log.append("a")
    client = StreamClient()

    def texts(page: tuple[int, list[str]]) -> Any:
        return page[1]

    with pytest.raises(AttributeError):
        await client.request(EventStream(log.purgatory, log.read, ["log"], texts))
    assert client.sent == []


async def test_the_events_before_an_exception_are_sent_and_a_client_that_comes_back_gets_an_error(
    log: Log,
) -> None:
    log.append("a")
    log.append("broken")
    client, again = StreamClient(), StreamClient((b"last-event-id", b"1"))
    stream = EventStream(log.purgatory, log.read, ["log"], breaking)
    with pytest.raises(ArithmeticError, match="broken"):
        await client.request(stream)
    assert client.body == b"id: 1\ndata: a\n\n"
    assert not client.complete
    with pytest.raises(ArithmeticError, match="broken"):
        await again.request(stream)
    assert again.sent == []


async def test_an_exception_of_a_later_hook_breaks_the_stream_off(purgatory: Purgatory) -> None:
    def read(last: str | None) -> DelayedOperation[str]:
        return Gate(15, completing=raising(ArithmeticError("broken")))

    client = StreamClient()
    task = client.request(EventStream(purgatory, read, ["key"], lambda name: []))
    await parked(purgatory, client)
    for operation in purgatory.operations():
        operation.force_complete()
    with pytest.raises(ArithmeticError, match="broken"):
        await task
    assert not client.complete


def starlette_app(stream: Callable[[], EventStream]) -> ASGIApp:
    async def pass_on(request: Request, call_next: Any) -> Any:
        return await call_next(request)

    async def follow(request: Request) -> EventStream:
        return stream()

    middleware = [
        Middleware(BaseHTTPMiddleware, dispatch=pass_on),
        Middleware(GZipMiddleware, minimum_size=1),
    ]
    return Starlette(routes=[Route("/", follow)], middleware=middleware)


def fastapi_app(stream: Callable[[], EventStream]) -> ASGIApp:
    app = FastAPI()

    @app.get("/")
    async def follow() -> EventStream:
        return stream()

    return app


async def test_a_stream_is_the_response_class_of_a_route(log: Log) -> None:
    app = FastAPI()

    @app.get("/", response_class=EventStream)
    async def follow() -> EventStream:
        return log.stream()

    (media_types,) = [
        response["content"] for response in app.openapi()["paths"]["/"]["get"]["responses"].values()
    ]
    assert list(media_types) == ["text/event-stream"]


Application = Callable[[Callable[[], EventStream]], ASGIApp]


@pytest.mark.parametrize("application", [starlette_app, fastapi_app])
async def test_a_framework_serves_the_stream_until_its_client_leaves(
    log: Log, application: Application
) -> None:
    client = StreamClient((b"accept-encoding", b"gzip"))
    task = client.request(application(log.stream))
    await until(lambda: len(client.sent) > 1)
    assert client.body == b":\n\n"
    log.append("a")
    await until(lambda: log.purgatory.statistics().pending and len(client.sent) > 2)
    assert client.body == b":\n\nid: 1\ndata: a\n\n"
    client.send(DISCONNECT)
    await task
    assert log.purgatory.statistics().cancelled == 1


@pytest.mark.parametrize("application", [starlette_app, fastapi_app])
async def test_a_stream_that_is_refused_at_once_is_a_503_with_retry_after(application: Application) -> None:
    async with Purgatory(max_pending=1) as purgatory:
        purgatory.try_complete_else_watch(Gate(), ["other"])
        full, closed = StreamClient(), StreamClient()
        await answered(full, application(Log(purgatory).stream))
        await purgatory.aclose()
        await answered(closed, application(Log(purgatory).stream))
    for client in (full, closed):
        assert (client.status, client.headers[b"retry-after"]) == (503, b"1")


async def test_a_purgatory_that_was_never_started_is_an_error_of_the_server() -> None:
    with pytest.raises(PurgatoryNotOpen):
        await StreamClient().request(Log(Purgatory()).stream())


async def test_an_http_exception_of_read_is_the_response_and_later_the_end(log: Log) -> None:
    def read(last: str | None) -> DelayedRead:
        if last == "2":
            raise HTTPException(410, "these records are gone")
        return log.read(last)

    def stream() -> EventStream:
        return EventStream(log.purgatory, read, ["log"], events)

    for record in "ab":
        log.append(record)
    client, again = StreamClient(), StreamClient((b"last-event-id", b"2"))
    await answered(client, fastapi_app(stream))
    assert (client.status, client.body.count(b"data")) == (200, 2)
    await answered(again, fastapi_app(stream))
    assert again.status == 410


def app_with_background_task(stream: Callable[[], EventStream], ended: list[str]) -> ASGIApp:
    app = FastAPI()

    async def note_end() -> None:
        ended.append("the task has run")

    @app.get("/")
    async def follow(tasks: BackgroundTasks) -> EventStream:
        tasks.add_task(note_end)
        return stream()

    return app


async def test_background_tasks_run_after_the_end_of_the_stream(log: Log) -> None:
    client, ended = StreamClient(), list[str]()
    task = client.request(app_with_background_task(log.stream, ended))
    await parked(log.purgatory, client)
    assert ended == []
    client.send(DISCONNECT)
    await task
    assert ended == ["the task has run"]


async def test_background_tasks_run_after_a_stream_that_closing_has_ended(log: Log) -> None:
    client, ended = StreamClient(), list[str]()
    task = client.request(app_with_background_task(log.stream, ended))
    await parked(log.purgatory, client)
    await log.purgatory.aclose()
    await task
    assert client.complete
    assert ended == ["the task has run"]


async def test_background_tasks_run_also_when_there_is_nothing_to_come(purgatory: Purgatory) -> None:
    def stream() -> EventStream:
        return EventStream(purgatory, lambda last: None, ["log"], events)

    client, ended = StreamClient(), list[str]()
    await answered(client, app_with_background_task(stream, ended))
    assert (client.status, ended) == (204, ["the task has run"])
