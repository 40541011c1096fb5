"""A browser's EventSource follows a stream, and goes on where it was when its connection is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.web.serving import UVICORN, response, serving

pytestmark = [pytest.mark.real_time, pytest.mark.long]

APPLICATION = """
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from purgatory import DelayedOperation, Purgatory
from purgatory.web import EventStream, ServerSentEvent

PAGE = '''<!doctype html><title>stream</title><script>
const seen = [];
const source = new EventSource("/stream");
source.onmessage = (event) => seen.push(event.lastEventId + " " + event.data);
source.addEventListener("farewell", (event) => seen.push("farewell " + event.data));
source.onerror = () => seen.push(["connecting", "open", "closed"][source.readyState]);
</script>'''

records = []

class DelayedRead(DelayedOperation[list[str]]):
    def __init__(self, offset):
        super().__init__(15)
        self.offset = offset
    def try_complete(self):
        return len(records) > self.offset and self.force_complete()
    def on_complete(self):
        return list(enumerate(records[self.offset:], self.offset + 1))

def events(page):
    for number, record in page:
        yield ServerSentEvent(str(number), record, "farewell" if record == "bye" else None)

def read(last):
    return None if "bye" in records[:int(last or 0)] else DelayedRead(int(last or 0))

@asynccontextmanager
async def lifespan(app):
    async with Purgatory() as app.state.purgatory:
        yield

async def page(request):
    return HTMLResponse(PAGE)

async def stream(request):
    return EventStream(request.app.state.purgatory, read, ["records"], events)

async def append(request):
    records.append(request.query_params["record"])
    request.app.state.purgatory.check_and_complete("records")
    return Response()

async def cut(request):
    return Response(str(len(request.app.state.purgatory.cancel_for_key("records"))))

async def statistics(request):
    return Response(f"{request.app.state.purgatory.statistics().pending} pending")

def create_app():
    return Starlette(lifespan=lifespan, routes=[
        Route("/", page), Route("/stream", stream), Route("/statistics", statistics),
        Route("/append", append, methods=["POST"]), Route("/cut", cut, methods=["POST"]),
    ])
"""


def test_a_lost_connection_is_renewed_after_the_last_event(browser: Browser, tmp_path: Path) -> None:
    with serving(UVICORN, tmp_path, APPLICATION) as server:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.port}/")
        server.until(b"1 pending")
        response(server.request("/append?record=one", "POST"))
        page.wait_for_function("seen.length == 1")
        server.until(b"1 pending")
        assert response(server.request("/cut", "POST")).endswith(b"1")
        # Nobody follows now. The browser asks again after some seconds.
        response(server.request("/append?record=two", "POST"))
        page.wait_for_function("seen.includes('2 two')", timeout=30_000)
        server.until(b"1 pending")
        response(server.request("/append?record=bye", "POST"))
        page.wait_for_function("seen.includes('closed')", timeout=30_000)
        seen = ["1 one", "connecting", "2 two", "farewell bye", "connecting", "closed"]
        assert page.evaluate("seen") == seen
        page.close()
