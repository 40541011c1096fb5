"""The chat page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # has no types
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.examples.longpoll.process import ServiceProcess

pytestmark = pytest.mark.real_time

TIMEOUT = 60_000
"""Milliseconds until a hang fails its test. No test depends on how soon something happens."""

OpenTab = Callable[..., Page]


@pytest.fixture(scope="module", autouse=True)
def _long_timeout() -> Iterator[None]:
    expect.set_options(timeout=TIMEOUT)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture
def context(browser: Browser, running_service: ServiceProcess) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=running_service.url, locale="en-GB", timezone_id="UTC")
    context.set_default_timeout(TIMEOUT)
    yield context
    context.close()


@pytest.fixture
def tab(context: BrowserContext) -> Iterator[OpenTab]:
    """Opens a tab under a name. The test fails if a tab reports an error."""
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        # The browser logs refusals and failures of requests as errors. Tests provoke these.
        if message.type == "error" and not re.search(r"status of (410|503)|DISCONNECTED", message.text):
            errors.append(message.text)

    def open_tab(name: str, topic: str) -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", note)
        page.add_init_script(f"sessionStorage.getItem('name') ?? sessionStorage.setItem('name', '{name}')")
        page.goto(f"/#{topic}")
        expect(page.get_by_role("status")).to_have_text("live")
        return page

    yield open_tab
    assert errors == []


def send(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")


def lines(page: Page) -> list[str]:
    """The messages, without their times."""
    return [re.sub(r"^\S+ ", "", line) for line in page.locator("#messages p").all_inner_texts()]


def test_two_tabs_chat_and_see_who_is_online(tab: OpenTab) -> None:
    ada, bob = tab("ada", "tea"), tab("bob", "tea")
    expect(ada.locator("#people")).to_have_text("ada, bob")
    send(ada, "<img src=nothing onerror=alert(1)>")
    send(bob, "hello")
    for page in (ada, bob):
        expect(page.locator("#messages p")).to_have_count(2)
        assert set(lines(page)) == {"ada <img src=nothing onerror=alert(1)>", "bob hello"}
    bob.get_by_label("Name").fill("eve")
    bob.get_by_label("Name").press("Enter")
    expect(ada.locator("#people")).to_have_text("ada, eve")
    bob.close(run_before_unload=True)
    expect(ada.locator("#people")).to_have_text("ada")


def test_a_tab_opens_another_topic(tab: OpenTab) -> None:
    page = tab("ada", "no such topic!")
    assert page.title() == "lobby \u2013 Topics"
    page.get_by_label("Topic").fill("milk")
    page.get_by_role("button", name="Open").click()
    expect(page).to_have_title("milk \u2013 Topics")
    send(page, "hello")
    expect(page.locator("#messages p")).to_have_count(1)
    page.go_back()
    expect(page.locator("#messages p")).to_have_count(0)


def test_after_an_interruption_a_tab_misses_no_message(
    tab: OpenTab, context: BrowserContext, running_service: ServiceProcess
) -> None:
    page = tab("ada", "coffee")
    send(page, "before")
    expect(page.locator("#messages p")).to_have_count(1)
    context.set_offline(True)
    send(page, "not sent")
    expect(page.get_by_role("alert")).to_contain_text("Not sent")
    expect(page.get_by_label("Message", exact=True)).to_have_value("not sent")
    url = f"{running_service.url}/topics/coffee"
    for text in ("meanwhile", "after"):
        # The first one may still come with the poll that waits already.
        assert httpx.post(url, json={"name": "bob", "text": text}, timeout=60).status_code == 201
        expect(page.get_by_role("status")).to_contain_text("trying again")
    context.set_offline(False)
    expect(page.locator("#messages p")).to_have_count(3)
    assert lines(page) == ["ada before", "bob meanwhile", "bob after"]


def test_a_tab_whose_position_is_gone_begins_anew(tab: OpenTab, context: BrowserContext) -> None:
    page = tab("ada", "water")
    send(page, "still here")
    expect(page.locator("#messages p")).to_have_count(1)
    # As after a restart, the next poll names a log that is no more.
    context.route(
        re.compile("after="),
        lambda route: route.continue_(url=re.sub("after=[^&]+", "after=gone:7", route.request.url)),
        times=1,
    )
    # The page forgets its messages before it asks without a position.
    with page.expect_request(lambda request: "wait=" in request.url and "after=" not in request.url):
        send(page, "again")
    expect(page.locator("#messages p")).to_have_count(2)
    assert lines(page) == ["ada still here", "ada again"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_is_accessible_and_fits(tab: OpenTab, width: int, scheme: Literal["light", "dark"]) -> None:
    page = tab("ada", f"size-{width}-{scheme}")
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    send(page, "long" * 100)
    expect(page.locator("#messages p")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth && scrollY === 0")
    assert [violation["id"] for violation in Axe().run(page).response["violations"]] == []


def test_the_keyboard_reaches_every_control_in_order(tab: OpenTab) -> None:
    page = tab("ada", "keys")
    reached = []
    for _ in range(7):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert reached == ["Dashboard", "topic", "Open", "messages", "name", "text", "Send"]
