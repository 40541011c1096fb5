"""A HEAD request gets the headers of a GET. After them, nothing of it waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx
import pytest
from fastapi import BackgroundTasks, FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from purgatory import Purgatory
from purgatory.web import EventStream, long_poll
from tests.operations import Gate
from tests.web.poll_client import parked
from tests.web.stream_client import DelayedRead, Log, StreamClient, events


@pytest.fixture
def log(purgatory: Purgatory) -> Log:
    return Log(purgatory)


def nothing_was_offered(purgatory: Purgatory) -> bool:
    statistics = purgatory.statistics()
    ended = (statistics.completed, statistics.expired, statistics.cancelled, statistics.failed)
    return (statistics.pending, statistics.refused, *ended) == (0,) * 6


def head(*headers: tuple[bytes, bytes]) -> StreamClient:
    client = StreamClient(*headers)
    client.scope["method"] = "HEAD"
    return client


async def test_head_gets_the_headers_of_a_stream_and_nothing_waits(log: Log) -> None:
    log.append("a")
    client, following = head(), StreamClient()
    await client.request(log.stream())
    assert (client.status, client.body, client.complete) == (200, b"", True)
    assert nothing_was_offered(log.purgatory)
    task = following.request(log.stream())
    await parked(log.purgatory, following)
    assert client.headers == following.headers
    await log.purgatory.aclose()
    await task


async def test_head_gets_the_status_that_read_decides(log: Log) -> None:
    def read(last: str | None) -> DelayedRead | None:
        if last == "gone":
            raise HTTPException(410)
        return None

    async def follow(request: Request) -> EventStream:
        return EventStream(log.purgatory, read, ["log"], events)

    app = Starlette(routes=[Route("/", follow)])
    nothing, gone = head(), head((b"last-event-id", b"gone"))
    await nothing.request(app)
    await gone.request(app)
    assert (nothing.status, gone.status) == (204, 410)


async def test_heads_leave_room_in_a_full_purgatory() -> None:
    async with Purgatory(max_pending=1) as purgatory:
        log = Log(purgatory)
        for _ in range(3):
            await head().request(log.stream())
        client = StreamClient()
        task = client.request(log.stream())
        await parked(purgatory, client)
        assert client.status == 200
        await purgatory.aclose()
        await task


async def test_background_tasks_run_after_head(log: Log) -> None:
    app, ended = FastAPI(), list[str]()

    @app.head("/")
    async def follow(tasks: BackgroundTasks) -> EventStream:
        tasks.add_task(ended.append, "the task has run")
        return log.stream()

    client = head()
    await client.request(app)
    assert (client.status, ended) == (200, ["the task has run"])


async def test_compression_leaves_the_responses_of_later_requests_as_they_are(log: Log) -> None:
    app = GZipMiddleware(log.stream(), minimum_size=0)
    for _ in range(2):
        client = head((b"accept-encoding", b"gzip"))
        await client.request(app)
        assert client.complete
    client = StreamClient()
    task = client.request(log.stream())
    await parked(log.purgatory, client)
    await log.purgatory.aclose()
    await task
    assert client.sent[-1]["body"] == b""


async def test_head_waits_for_a_long_poll_as_a_get_does_and_has_no_body(purgatory: Purgatory) -> None:
    async def poll(request: Request) -> Response:
        return PlainTextResponse(await long_poll(request, purgatory, Gate(name="answer"), ["key"]))

    client = head()
    task = client.request(Starlette(routes=[Route("/", poll)]))
    await parked(purgatory, client)
    assert client.sent == []
    for operation in purgatory.operations():
        operation.force_complete()
    await task
    # The length of the body of a GET. Servers drop the body itself.
    assert (client.status, client.headers[b"content-length"]) == (200, b"6")
    assert purgatory.statistics().pending == 0


def starlette_app(endpoint: Callable[[Request], Awaitable[Response]]) -> ASGIApp:
    return Starlette(routes=[Route("/", endpoint)])


def fastapi_app(endpoint: Callable[[Request], Awaitable[Response]]) -> ASGIApp:
    app = FastAPI()
    app.add_api_route("/", endpoint, methods=["GET", "HEAD"], response_model=None)
    return app


@pytest.mark.parametrize("application", [starlette_app, fastapi_app])
@pytest.mark.parametrize("method", ["OPTIONS", "DELETE"])
async def test_other_methods_offer_nothing_and_name_the_allowed_ones(
    log: Log, application: Callable[[Callable[[Request], Awaitable[Response]]], ASGIApp], method: str
) -> None:
    async def follow(request: Request) -> EventStream:
        return log.stream()

    transport = httpx.ASGITransport(application(follow))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        refused = await client.request(method, "/")
    assert refused.status_code == 405
    assert set(refused.headers["Allow"].split(", ")) == {"GET", "HEAD"}
    assert nothing_was_offered(log.purgatory)
