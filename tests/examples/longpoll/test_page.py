"""The page in a real browser: tabs that talk to each other by long polls."""

from __future__ import annotations

import json
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
        if message.type == "error" and not re.search(r"status of (403|404|410|413|422|503)", message.text):
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


def test_a_page_that_says_it_leaves_does_not_come_back_by_the_answer_to_that(
    tab: OpenTab, service: LiveService
) -> None:
    page = tab("carl", "leaving")
    expect(page.locator("#online li.self")).to_have_text("carl")
    service.until(lambda: service.pending("polls") == 2)
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    # Its feed's is left.
    service.until(lambda: service.pending("polls") == 1)
    service.until(lambda: "carl" not in httpx.get(f"{service.url}/presence").json()["online"])
    assert service.pending("polls") == 1


def test_the_feed_shows_what_others_record(tab: OpenTab, service: LiveService) -> None:
    page = tab("ada", "feed")
    expect(page.get_by_role("log")).to_be_empty()
    httpx.post(f"{service.url}/topics/feed", json={"temperature": 21.5})
    expect(page.locator("#feed p")).to_have_text(['{"temperature":21.5}'])
    page.reload()
    expect(page.locator("#feed p")).to_have_text(['{"temperature":21.5}'])


def test_what_is_said_goes_to_the_topic_that_is_open_and_not_to_one_that_is_only_typed(
    tab: OpenTab, service: LiveService
) -> None:
    page = tab("ada", "opened")
    page.get_by_label("Topic").fill("typed")
    say(page, "hello")
    expect(page.locator("#feed p")).to_have_text(["adahello"])
    assert httpx.get(f"{service.url}/topics/typed").json()["records"] == []


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
    expect(page.get_by_role("alert")).to_have_text("Not sent: no more topics (status 403)")


def test_what_is_wrong_with_a_record_is_shown(tab: OpenTab) -> None:
    page = tab("ada", "wrong")
    # Longer than the field lets anybody type.
    page.get_by_label("Message").evaluate("field => { field.value = 'x'.repeat(20_000); }")
    page.get_by_label("Message").press("Enter")
    expect(page.get_by_role("alert")).to_have_text(re.compile(r"Not sent: .+ \(status 413\)"))


@pytest.mark.parametrize(
    ("status", "answer", "why"),
    [
        (422, '{"detail": [{"msg": "too long"}, {"msg": "no name"}]}', "too long; no name (status 422)"),
        (404, '{"detail": "Not Found"}', "Not Found (status 404)"),
        (403, "<html>", "status 403"),
    ],
)
def test_what_is_refused_for_good_is_said_and_not_asked_for_again(
    tab: OpenTab, context: BrowserContext, status: int, answer: str, why: str
) -> None:
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=status, body=answer)

    context.route("**/topics/closed*", refuse)
    page = tab("ada", "closed")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text(f"Not asking for topics/closed?wait=25 any more: {why}")
    page.get_by_label("Topic").fill(f"open-{status}")
    page.get_by_role("button", name="Open").click()
    expect(alert).to_have_count(0)
    say(page, "hello")
    expect(page.locator("#feed p")).to_have_text(["adahello"])
    assert len(asked) == 1


@pytest.mark.parametrize("address", ["my topic", "100%", "a/b", "-", "x" * 65])
def test_an_address_that_names_no_topic_is_said_and_leads_to_the_lobby(tab: OpenTab, address: str) -> None:
    page = tab("ada", address)
    expect(page.get_by_role("alert")).to_have_text(f"No topic can be named {address}; this is the lobby")
    expect(page.get_by_label("Topic")).to_have_value("lobby")
    assert page.title() == "lobby \u2013 Topics"
    page.set_viewport_size({"width": 380, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def waits_only(context: BrowserContext, *times: int | None) -> None:
    """Its pages wait for so many milliseconds for the answers to their first requests, instead of long."""
    context.add_init_script(
        f"const times = {json.dumps(times)}, timeout = AbortSignal.timeout.bind(AbortSignal);"
        "AbortSignal.timeout = (usual) => timeout(times.shift() ?? usual);"
    )


def test_an_answer_that_never_comes_is_asked_for_again(
    tab: OpenTab, context: BrowserContext, service: LiveService
) -> None:
    httpx.post(f"{service.url}/topics/hanging", json={"from": "bob", "text": "hello"})
    unanswered: list[Route] = []
    context.route("**/topics/hanging?*", lambda route: unanswered.append(route), times=1)
    # The feed is asked for before all else.
    waits_only(context, 100)
    page = tab("ada", "hanging")
    expect(page.locator("#feed p")).to_have_text(["bobhello"])
    unanswered.pop().fulfill()


def test_a_heartbeat_that_is_never_answered_does_not_stop_the_next(
    tab: OpenTab, context: BrowserContext, service: LiveService
) -> None:
    unanswered: list[Route] = []
    context.route("**/presence/*", lambda route: unanswered.append(route), times=2)
    # The feed, a heartbeat at once, who is online, and the heartbeat after its answer.
    waits_only(context, None, None, None, 100)
    page = tab("ada", "beating")
    expect(page.locator("#online li.self")).to_have_text("ada")
    for route in unanswered:
        route.fulfill()
    assert len(unanswered) == 2


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
