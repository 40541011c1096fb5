"""The chat page in a real browser: its tabs follow topics and presence by long polls."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # has no types
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Route, expect

from tests.examples.longpoll.process import ServiceProcess

pytestmark = pytest.mark.real_time

TIMEOUT = 30_000
"""Milliseconds until a hang fails its test. No test depends on how soon something happens."""

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.fixture(scope="module", autouse=True)
def _long_timeout() -> Iterator[None]:
    expect.set_options(timeout=TIMEOUT)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture
def context(browser: Browser, running_service: ServiceProcess) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=running_service.url)
    context.set_default_timeout(TIMEOUT)
    yield context
    context.close()
    # Closing its tabs withdraws their polls.
    running_service.until(lambda: running_service.pending("polls") == 0)


OpenTab = Callable[..., Page]


@pytest.fixture
def tab(context: BrowserContext, running_service: ServiceProcess) -> Iterator[OpenTab]:
    """Opens a tab under a name. The test fails if a tab reports an error or sends a request elsewhere."""
    errors: list[str] = []

    def check_message(message: ConsoleMessage) -> None:
        # The browser logs refusals as errors; tests provoke these.
        if message.type == "error" and not re.search(r"status of (403|404|410|413|422|503)", message.text):
            errors.append(message.text)

    def check_request(request: Request) -> None:
        if not request.url.startswith((running_service.url, "data:")):
            errors.append(request.url)

    def open_tab(name: str, topic: str) -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", check_message)
        page.on("request", check_request)
        page.add_init_script(f"sessionStorage.setItem('name', '{name}')")
        page.goto(f"/#{topic}")
        expect(page.get_by_role("status")).to_have_text("live")
        return page

    yield open_tab
    assert errors == []


def send(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")


def open_topic(page: Page, topic: str) -> None:
    page.get_by_label("Topic").fill(topic)
    page.get_by_role("button", name="Open").click()


def test_two_tabs_chat_and_markup_is_shown_as_text(tab: OpenTab, running_service: ServiceProcess) -> None:
    ada, bob = tab("ada", "chat"), tab("bob", "chat")
    for page in (ada, bob):
        expect(page.locator("#online li")).to_have_text(["ada", "bob"])
    # Each tab has a poll of the feed and one of presence.
    running_service.until(lambda: running_service.pending("polls") == 4)
    send(ada, "Is anybody here?")
    expect(bob.get_by_role("log")).to_contain_text("Is anybody here?")
    send(bob, "<script>document.title = 'harmed'</script><b>me</b>")
    for page in (ada, bob):
        expect(page.locator("#feed p")).to_have_text(
            ["adaIs anybody here?", "bob<script>document.title = 'harmed'</script><b>me</b>"]
        )
        assert page.title() == "chat \u2013 Topics"
    assert running_service.pending("polls") <= 4


def test_closing_a_tab_withdraws_its_polls_and_makes_its_name_offline(
    tab: OpenTab, running_service: ServiceProcess
) -> None:
    ada, bob = tab("ada", "closing"), tab("bob", "closing")
    expect(ada.locator("#online li")).to_have_text(["ada", "bob"])
    running_service.until(lambda: running_service.pending("polls") == 4)
    withdrawn = running_service.finished("polls", "cancelled")
    bob.close()
    expect(ada.locator("#online li")).to_have_text(["ada"])
    running_service.until(lambda: running_service.pending("polls") == 2)
    assert running_service.finished("polls", "cancelled") >= withdrawn + 1


def test_a_page_that_is_left_sends_no_more_heartbeats(tab: OpenTab, running_service: ServiceProcess) -> None:
    page = tab("carl", "leaving")
    expect(page.locator("#online li.self")).to_have_text("carl")
    running_service.until(lambda: running_service.pending("polls") == 2)
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    # The poll of the feed is still there.
    running_service.until(lambda: running_service.pending("polls") == 1)
    running_service.until(
        lambda: "carl" not in httpx.get(f"{running_service.url}/presence", timeout=30).json()["online"]
    )
    assert running_service.pending("polls") == 1


def test_the_feed_shows_the_records_of_other_clients(tab: OpenTab, running_service: ServiceProcess) -> None:
    page = tab("ada", "feed")
    expect(page.get_by_role("log")).to_be_empty()
    httpx.post(f"{running_service.url}/topics/feed", json={"temperature": 21.5}, timeout=30)
    expect(page.locator("#feed p")).to_have_text(['{"temperature":21.5}'])
    page.reload()
    expect(page.locator("#feed p")).to_have_text(['{"temperature":21.5}'])


def test_a_message_goes_to_the_open_topic_and_not_to_the_one_in_the_field(
    tab: OpenTab, running_service: ServiceProcess
) -> None:
    page = tab("ada", "opened")
    page.get_by_label("Topic").fill("typed")
    send(page, "hello")
    expect(page.locator("#feed p")).to_have_text(["adahello"])
    assert httpx.get(f"{running_service.url}/topics/typed", timeout=30).json()["records"] == []


def test_opening_another_topic_withdraws_the_poll_of_the_old_one(
    tab: OpenTab, running_service: ServiceProcess
) -> None:
    page = tab("ada", "one")
    send(page, "in one")
    expect(page.locator("#feed p")).to_have_count(1)
    open_topic(page, "two")
    expect(page.locator("#feed p")).to_have_count(0)
    running_service.until(lambda: running_service.pending("polls") == 2)
    send(page, "in two")
    expect(page.locator("#feed p")).to_have_text(["adain two"])


def test_the_feed_goes_on_after_a_503_and_a_410(tab: OpenTab, context: BrowserContext) -> None:
    answers = [(410, {}), (503, {"Retry-After": "0"})]

    def refuse(route: Route) -> None:
        if answers and route.request.method == "GET":
            status, headers = answers.pop()
            route.fulfill(status=status, headers=headers)
        else:
            route.fallback()

    context.route("**/topics/*", refuse)
    page = tab("ada", "refused")
    send(page, "hello")
    expect(page.locator("#feed p")).to_have_text(["adahello"])
    assert answers == []


def test_the_reason_why_a_message_was_refused_is_shown(tab: OpenTab, context: BrowserContext) -> None:
    page = tab("ada", "refusing")
    # Longer than the field lets anybody type.
    page.get_by_label("Message").evaluate("field => { field.value = 'x'.repeat(20_000); }")
    page.get_by_label("Message").press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("Not sent: a record may have at most 16384 bytes (status 413)")
    context.route("**/topics/*", lambda route: route.fulfill(status=403, json={"detail": "no more topics"}))
    send(page, "hello")
    expect(alert).to_have_text("Not sent: no more topics (status 403)")


def test_a_topic_that_is_refused_for_good_is_requested_once_and_the_reason_is_shown(
    tab: OpenTab, context: BrowserContext
) -> None:
    refusals = [
        (422, '{"detail": [{"msg": "too long"}, {"msg": "no name"}]}', "too long; no name (status 422)"),
        (404, '{"detail": "Not Found"}', "Not Found (status 404)"),
        (403, "<html>", "status 403"),
    ]
    requests: list[str] = []

    def refuse(route: Route) -> None:
        status, body, _ = refusals[len(requests)]
        requests.append(route.request.url)
        route.fulfill(status=status, body=body)

    context.route("**/topics/closed*", refuse)
    page = tab("ada", "start")
    alert = page.get_by_role("alert")
    for number, (*_, reason) in enumerate(refusals):
        open_topic(page, f"closed-{number}")
        expect(alert).to_have_text(f"The service refuses topics/closed-{number}?wait=25: {reason}")
        open_topic(page, f"open-{number}")
        expect(alert).to_have_count(0)
        send(page, "hello")
        expect(page.locator("#feed p")).to_have_text(["adahello"])
    assert len(requests) == len(refusals)


def test_an_address_without_a_valid_topic_opens_the_lobby_and_says_so(tab: OpenTab) -> None:
    page = tab("ada", "my topic")
    page.set_viewport_size({"width": 380, "height": 800})
    for address in ("my topic", "100%", "a/b", "-", "x" * 65):
        page.goto(f"/#{address}")
        message = f"{address} is not a valid topic name; this is the lobby"
        expect(page.get_by_role("alert")).to_have_text(message)
        expect(page.get_by_label("Topic")).to_have_value("lobby")
        assert page.title() == "lobby \u2013 Topics"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def time_out_after(context: BrowserContext, *milliseconds: int | None) -> None:
    """Give the first requests of each page these timeouts; None keeps the page's own."""
    context.add_init_script(
        f"const times = {json.dumps(milliseconds)}, timeout = AbortSignal.timeout.bind(AbortSignal);"
        "AbortSignal.timeout = (usual) => timeout(times.shift() ?? usual);"
    )


def test_a_request_without_an_answer_is_sent_again(
    tab: OpenTab, context: BrowserContext, running_service: ServiceProcess
) -> None:
    httpx.post(f"{running_service.url}/topics/hanging", json={"from": "bob", "text": "hello"}, timeout=30)
    unanswered: list[Route] = []
    context.route("**/topics/hanging?*", lambda route: unanswered.append(route), times=1)
    # The feed is requested first.
    time_out_after(context, 100)
    page = tab("ada", "hanging")
    expect(page.locator("#feed p")).to_have_text(["bobhello"])
    unanswered.pop().fulfill()


def test_a_heartbeat_without_an_answer_does_not_prevent_the_next_one(
    tab: OpenTab, context: BrowserContext
) -> None:
    unanswered: list[Route] = []
    context.route("**/presence/*", lambda route: unanswered.append(route), times=2)
    # In order: the feed, the first heartbeat, presence, and the heartbeat after its answer.
    time_out_after(context, None, None, None, 100)
    page = tab("ada", "beating")
    expect(page.locator("#online li.self")).to_have_text("ada")
    for route in unanswered:
        route.fulfill()
    assert len(unanswered) == 2


def test_the_page_is_accessible_and_fits_on_wide_and_narrow_screens(tab: OpenTab) -> None:
    page = tab("ada", "layout")
    send(page, "A message that is long enough to be broken into several lines on a narrow screen. " * 3)
    expect(page.locator("#feed p")).to_have_count(1)
    for width in (380, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            violations = Axe().run(page).response["violations"]
            assert [v["id"] for v in violations if v["impact"] in ("serious", "critical")] == []
            if pictures := os.environ.get("PAGE_PICTURES"):
                page.screenshot(path=Path(pictures) / f"chat-{width}-{scheme}.png")


def test_the_keyboard_reaches_every_control_in_order(tab: OpenTab) -> None:
    page = tab("ada", "keys")
    page.keyboard.press("Tab")
    reached = []
    for _ in range(9):
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        page.keyboard.press("Tab")
    assert reached == ["topic", "Open", "Dashboard", "Metrics", "API", "feed", "name", "text", "Send"]
