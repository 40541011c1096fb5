"""The page at an address where the workers of one server answer."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.serving import UVICORN, Server, serving

pytestmark = [pytest.mark.real_time, pytest.mark.long]

APPLICATION = """
import os
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.routing import Mount
from purgatory import DelayedValue, Purgatory
from purgatory.web import dashboard

def create_app():
    polls = Purgatory("polls")

    @asynccontextmanager
    async def lifespan(app):
        async with polls:
            # So a figure on the page tells which process it is of.
            for _ in range(1000 + os.getpid() % 1000):
                polls.try_complete_else_watch(DelayedValue(3600), ["key"])
            yield

    return Starlette(routes=[Mount("/dashboard", dashboard(polls))], lifespan=lifespan)
"""

COMMAND = (*UVICORN, "--workers", "2", "--header", "Connection:close")
"""A browser would keep its connection, and so its process. Behind a proxy requests may reach any of them."""

TIMEOUT = 60_000
"""Milliseconds until a hang fails the test."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(COMMAND, tmp_path, APPLICATION) as server:
        yield server


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{server.port}/dashboard/")
        expect.set_options(timeout=TIMEOUT)
        try:
            yield page
        finally:
            expect.set_options(timeout=5_000)


REQUESTS = "performance.getEntriesByType('resource').filter((each) => each.name.includes('/data?'))"


def test_the_page_names_both_processes_and_shows_the_one_that_is_chosen(page: Page, server: Server) -> None:
    expect(page.get_by_role("heading", name="Several processes answer here")).to_be_visible()
    expect(page.locator("#restart")).to_be_hidden()
    host = socket.gethostname()
    first, second = map(int, re.findall(r"Started server process \[(\d+)\]", server.log.read_text()))
    for pid in (first, second, first):
        pending = f"{1000 + pid % 1000:,}"
        button = page.get_by_role("button", name=f"{host}, process {pid}", exact=True)
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#process")).to_have_text(f"process {pid}")
        expect(page.locator("#pending")).to_have_text(pending)
    expect(page.locator("#processes button")).to_have_count(2)
    starts: list[float] = []
    while len(starts) < 10:
        with page.expect_response("**/data?*"):
            starts = page.evaluate(f"{REQUESTS}.map((each) => each.startTime)")
    # Since the page was opened, one request a second, and one more at the start.
    assert [start > (number - 1) * 1_000 for number, start in enumerate(starts)] == [True] * len(starts)
    if pictures := os.environ.get("PAGE_PICTURES"):
        page.screenshot(path=Path(pictures) / "dashboard-processes.png")
