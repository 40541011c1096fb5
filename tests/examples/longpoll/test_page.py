"""The page in a real browser: tabs that talk to each other by long polls."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # has no types
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route, expect

from tests.browser import browser as browser
from tests.examples.longpoll.process import LiveService, live_service

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with live_service("--session-timeout", "30") as service:
        yield service


@pytest.fixture
def context(browser: Browser, service: LiveService) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=service.url)
    context.set_default_timeout(10_000)
    yield context
    context.close()
    # What its tabs waited for is withdrawn.
    service.until(lambda: service.pending("polls") == 0)


OpenTab = Callable[..., Page]


@pytest.fixture
def tab(context: BrowserContext, service: LiveService) -> Iterator[OpenTab]:
    """Opens a tab as somebody; none may have had trouble in the end, or asked anybody but the service."""
    trouble: list[str] = []

    def note(message: ConsoleMessage) -> None:
        # The browser notes every refusal itself.
        if message.type == "error" and not re.search(r"status of (403|410|503)", message.text):
            trouble.append(message.text)

    def open_tab(name: str, topic: str) -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", note)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith((service.url, "data:")) else trouble.append(asked.url),
        )
        page.add_init_script(f"sessionStorage.setItem('name', '{name}')")
        page.goto(f"/#{topic}")
        # By the answer about who is online at the latest, which comes every five seconds.
        expect(page.get_by_role("status")).to_have_text("live", timeout=15_000)
        return page

    yield open_tab
    assert trouble == []


def say(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")


def test_two_tabs_chat(tab: OpenTab, service: LiveService) -> None:
    ada, bob = tab("ada", "chat"), tab("bob", "chat")
    for page in (ada, bob):
        expect(page.locator("#online li")).to_have_text(["ada", "bob"])
    # Each tab waits for the feed, and for who is online.
    service.until(lambda: service.pending("polls") == 4)
    say(ada, "Is anybody here?")
    expect(bob.get_by_role("log")).to_contain_text("Is anybody here?")
    say(bob, "<script>document.title = 'harmed'</script><b>me</b>")
    for page in (ada, bob):
        expect(page.locator("#feed p")).to_have_text(
            ["adaIs anybody here?", "bob<script>document.title = 'harmed'</script><b>me</b>"]
        )
        assert page.title() == "chat \u2013 Topics"
    assert service.pending("polls") <= 4


def test_a_tab_that_is_closed_withdraws_its_polls_and_is_offline(tab: OpenTab, service: LiveService) -> None:
    ada, bob = tab("ada", "closing"), tab("bob", "closing")
    expect(ada.locator("#online li")).to_have_text(["ada", "bob"])
    service.until(lambda: service.pending("polls") == 4)
    withdrawn = service.ended("polls", "cancelled")
    bob.close()
    expect(ada.locator("#online li")).to_have_text(["ada"])
    service.until(lambda: service.pending("polls") == 2)
    assert service.ended("polls", "cancelled") >= withdrawn + 1


def test_the_feed_shows_what_others_record(tab: OpenTab, service: LiveService) -> None:
    page = tab("ada", "feed")
    expect(page.get_by_role("log")).to_be_empty()
    httpx.post(f"{service.url}/topics/feed", json={"temperature": 21.5})
    expect(page.locator("#feed p")).to_have_text(['{"temperature":21.5}'])
    page.reload()
    expect(page.locator("#feed p")).to_have_text(['{"temperature":21.5}'])


def test_the_feed_goes_on_after_refusals(tab: OpenTab, context: BrowserContext) -> None:
    answers = [(410, {}), (503, {"Retry-After": "0"})]

    def refuse(route: Route) -> None:
        if answers and route.request.method == "GET":
            status, headers = answers.pop()
            route.fulfill(status=status, headers=headers)
        else:
            route.fallback()

    context.route("**/topics/*", refuse)
    page = tab("ada", "refused")
    say(page, "hello")
    expect(page.locator("#feed p")).to_have_text(["adahello"])
    assert answers == []


def test_another_topic_is_opened_and_the_old_one_left(tab: OpenTab, service: LiveService) -> None:
    page = tab("ada", "one")
    say(page, "in one")
    expect(page.locator("#feed p")).to_have_count(1)
    page.get_by_label("Topic").fill("two")
    page.get_by_role("button", name="Open").click()
    expect(page.locator("#feed p")).to_have_count(0)
    service.until(lambda: service.pending("polls") == 2)
    say(page, "in two")
    expect(page.locator("#feed p")).to_have_text(["adain two"])


def test_a_refusal_is_shown(tab: OpenTab, context: BrowserContext) -> None:
    page = tab("ada", "refusing")
    context.route("**/topics/*", lambda route: route.fulfill(status=403, json={"detail": "no more topics"}))
    say(page, "hello")
    expect(page.get_by_role("alert")).to_have_text("Not sent: no more topics")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1440])
def test_it_is_accessible_and_fits(tab: OpenTab, width: int, scheme: str) -> None:
    page = tab("ada", f"look-{width}-{scheme}")
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # it is one of the literals
    say(page, "A message that is long enough to be broken into several lines on a narrow screen. " * 3)
    expect(page.locator("#feed p")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    violations = Axe().run(page).response["violations"]
    assert [v["id"] for v in violations if v["impact"] in ("serious", "critical")] == []
    if pictures := os.environ.get("PAGE_PICTURES"):
        page.screenshot(path=Path(pictures) / f"chat-{width}-{scheme}.png")


def test_the_keyboard_suffices(tab: OpenTab) -> None:
    page = tab("ada", "keys")
    page.keyboard.press("Tab")
    reached = []
    for _ in range(9):
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        page.keyboard.press("Tab")
    assert reached == ["topic", "Open", "Dashboard", "Metrics", "API", "feed", "name", "text", "Send"]
    assert re.match(r"keys", page.title())
