"""The chat page in a real browser, whose tabs share one long poll."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # has no types
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, Route, expect

from tests.examples.longpoll.conftest import StartService
from tests.examples.longpoll.process import ServiceProcess

pytestmark = [pytest.mark.slow, pytest.mark.real_time]

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
    context = browser.new_context(base_url=running_service.url, locale="en-GB", timezone_id="UTC")
    context.set_default_timeout(TIMEOUT)
    yield context
    context.close()
    # Closing its tabs withdraws their poll.
    running_service.until(lambda: running_service.pending("polls") == 0)
    for name in online(running_service):
        # A browser that closes many tabs at once may be gone before all have said farewell.
        httpx.delete(f"{running_service.url}/presence/{name}", timeout=30)


@pytest.fixture
def without_worker(context: BrowserContext) -> None:
    """Tabs have a poll of their own, as where there are no shared workers. Then tests can intercept it."""
    context.add_init_script("delete globalThis.SharedWorker")


OpenTab = Callable[..., Page]


@pytest.fixture
def tab(context: BrowserContext, running_service: ServiceProcess) -> Iterator[OpenTab]:
    """Opens a tab under a name. The test fails if a tab reports an error or sends a request elsewhere."""
    errors: list[str] = []

    def check_message(message: ConsoleMessage) -> None:
        # The browser logs refusals as errors; tests provoke these.
        if message.type == "error" and not re.search(r"status of (403|422|503)|ERR_FAILED", message.text):
            errors.append(message.text)

    def check_request(request: Request) -> None:
        if not request.url.startswith((running_service.url, "data:")):
            errors.append(request.url)

    def open_tab(name: str, topic: str) -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", check_message)
        page.on("request", check_request)
        page.add_init_script(f"sessionStorage.setItem('chat name', '{name}')")
        page.goto(f"/#{topic}")
        expect(page.get_by_role("status")).to_have_text("live")
        return page

    yield open_tab
    assert errors == []


def send(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")


def open_topic(page: Page, topic: str) -> None:
    page.get_by_label("Topic", exact=True).fill(topic)
    page.get_by_role("button", name="Open").click()


def post(service: ServiceProcess, topic: str, *records: object) -> None:
    with httpx.Client(base_url=service.url, timeout=30) as client:
        for record in records:
            assert client.post(f"/topics/{topic}", json=record).status_code == 201


def records(service: ServiceProcess, topic: str) -> list[Any]:
    found: list[Any] = httpx.get(f"{service.url}/topics/{topic}", timeout=30).json()["records"]
    return found


def online(service: ServiceProcess) -> list[str]:
    names: list[str] = httpx.get(f"{service.url}/presence", timeout=30).json()["online"]
    return names


def messages(page: Page) -> Locator:
    return page.locator("#messages .text")


def unsent(page: Page) -> Locator:
    return page.locator("#outbox .message")


BELOW = "(feed => feed.scrollHeight - feed.scrollTop - feed.clientHeight)(document.getElementById('feed'))"


def below(page: Page) -> float:
    """The pixels of the feed that are below what is in view."""
    pixels: float = page.evaluate(BELOW)
    return pixels


def fill_feed(page: Page, service: ServiceProcess, topic: str) -> None:
    post(service, topic, *range(40))
    expect(messages(page)).to_have_count(40)


def test_two_tabs_chat_and_markup_is_shown_as_text(tab: OpenTab, running_service: ServiceProcess) -> None:
    ada, bob = tab("ada", "chat"), tab("bob", "chat")
    expect(ada.locator("#online li")).to_have_text(["ada (you)", "bob"])
    expect(bob.locator("#online li")).to_have_text(["ada", "bob (you)"])
    send(ada, "Is anybody here?")
    expect(messages(bob)).to_have_text(["Is anybody here?"])
    send(bob, "<script>document.title = 'harmed'</script><b>me</b>")
    for page in (ada, bob):
        expect(messages(page)).to_have_text(
            ["Is anybody here?", "<script>document.title = 'harmed'</script><b>me</b>"]
        )
        assert page.title() == "chat \u2013 Topics"


def test_seven_tabs_share_one_poll_and_none_waits_for_a_connection(
    tab: OpenTab, running_service: ServiceProcess
) -> None:
    """A browser opens six connections to one host, so polls of their own would hold up what the tabs send."""
    tabs = [tab(f"person-{number}", "seven") for number in range(7)]
    running_service.until(lambda: len(online(running_service)) == 7)
    expired = running_service.finished("polls", "expired")
    for number, page in enumerate(tabs):
        send(page, f"message {number}")
    for page in tabs:
        expect(messages(page)).to_have_count(7)
        expect(unsent(page)).to_have_count(0)
    running_service.until(lambda: running_service.pending("polls") == 1)
    # Nothing had to wait until a poll was over.
    assert running_service.finished("polls", "expired") == expired


def test_tabs_of_several_topics_share_one_poll(tab: OpenTab, running_service: ServiceProcess) -> None:
    one, other = tab("ada", "left"), tab("ada", "right")
    send(one, "in left")
    send(other, "in right")
    late = tab("bob", "left")
    expect(messages(one)).to_have_text(["in left"])
    expect(messages(other)).to_have_text(["in right"])
    # It has to begin where the others have been already.
    expect(messages(late)).to_have_text(["in left"])
    running_service.until(lambda: running_service.pending("polls") == 1)


def test_a_tab_that_closes_takes_its_name_along_unless_another_tab_has_it_too(
    tab: OpenTab, running_service: ServiceProcess
) -> None:
    ada, again, bob = tab("ada", "closing"), tab("ada", "closing"), tab("bob", "closing")
    expect(ada.locator("#online li")).to_have_text(["ada (you)", "bob"])
    bob.close()
    expect(ada.locator("#online li")).to_have_text(["ada (you)"])
    running_service.until(lambda: running_service.pending("polls") == 1)
    farewells = running_service.finished("sessions", "cancelled")
    polls = running_service.finished("polls", "cancelled")
    again.close()
    # The poll asks for less now.
    running_service.until(lambda: running_service.finished("polls", "cancelled") > polls)
    running_service.until(lambda: running_service.pending("polls") == 1)
    assert running_service.finished("sessions", "cancelled") == farewells
    ada.close()
    running_service.until(lambda: online(running_service) == [])
    running_service.until(lambda: running_service.pending("polls") == 0)


def test_a_tab_may_change_its_name(tab: OpenTab, running_service: ServiceProcess) -> None:
    page = tab("ada", "renaming")
    page.get_by_label("Name").fill("countess")
    page.get_by_label("Name").press("Tab")
    expect(page.locator("#online li")).to_have_text(["countess (you)"])
    send(page, "hello")
    expect(page.locator("#messages .from")).to_have_text(["countess (you)"])


def test_the_feed_shows_the_records_of_other_clients(tab: OpenTab, running_service: ServiceProcess) -> None:
    page = tab("ada", "feed")
    expect(page.get_by_role("log")).to_be_empty()
    post(
        running_service,
        "feed",
        {"temperature": 21.5},
        7,
        {"from": "bob", "text": "hi", "at": "x", "id": 1},
    )
    shown = ['{"temperature":21.5}', "7", "hi"]
    expect(messages(page)).to_have_text(shown)
    page.reload()
    expect(messages(page)).to_have_text(shown)


def test_messages_have_a_time_and_days_have_a_line(tab: OpenTab, running_service: ServiceProcess) -> None:
    page = tab("ada", "days")
    for number, at in enumerate(("2026-03-01T09:05:00Z", "2026-03-01T23:59:00Z", "2026-03-02T00:01:00Z")):
        post(running_service, "days", {"from": "bob", "text": str(number), "at": at, "id": str(number)})
    expect(page.locator("#messages time")).to_have_text(["09:05", "23:59", "00:01"])
    expect(page.locator("#messages .day")).to_have_text(
        [re.compile("1 March 2026"), re.compile("2 March 2026")]
    )


def test_messages_of_this_person_are_told_apart_also_after_a_reload(
    tab: OpenTab, running_service: ServiceProcess
) -> None:
    page = tab("ada", "own")
    send(page, "mine")
    expect(messages(page)).to_have_text(["mine"])
    # Anybody may use the name.
    post(running_service, "own", {"from": "ada", "text": "another's", "id": "elsewhere"})
    for _ in range(2):
        expect(messages(page)).to_have_text(["mine", "another's"])
        expect(page.locator("#messages .own .text")).to_have_text(["mine"])
        page.reload()


def test_a_message_goes_to_the_open_topic_and_not_to_the_one_in_the_field(
    tab: OpenTab, running_service: ServiceProcess
) -> None:
    page = tab("ada", "opened")
    page.get_by_label("Topic", exact=True).fill("typed")
    send(page, "hello")
    expect(messages(page)).to_have_text(["hello"])
    assert records(running_service, "typed") == []


def test_the_list_of_topics_is_live_and_opens_them(tab: OpenTab, running_service: ServiceProcess) -> None:
    page = tab("ada", "listing")
    post(running_service, "elsewhere", "news")
    page.get_by_role("link", name="elsewhere").click()
    expect(messages(page)).to_have_text(['"news"'])
    expect(page.locator("#topics [aria-current]")).to_have_text("elsewhere")
    open_topic(page, "listing")
    expect(messages(page)).to_have_count(0)
    running_service.until(lambda: running_service.pending("polls") == 1)


def test_the_links_to_the_other_pages_leave_the_chat_open(
    tab: OpenTab, context: BrowserContext, running_service: ServiceProcess
) -> None:
    page = tab("ada", "links")
    with context.expect_page() as opened:
        page.get_by_role("link", name="Metrics").click()
    assert opened.value.url.endswith("/metrics")
    post(running_service, "links", "news")
    expect(messages(page)).to_have_text(['"news"'])
    assert "ada" in online(running_service)


def test_a_second_enter_sends_nothing(
    tab: OpenTab, context: BrowserContext, running_service: ServiceProcess
) -> None:
    page = tab("ada", "twice")
    held: list[Route] = []
    context.route("**/topics/*", lambda route: held.append(route))
    send(page, "once")
    page.get_by_label("Message", exact=True).press("Enter")
    expect(unsent(page)).to_have_count(1)
    held.pop().continue_()
    expect(messages(page)).to_have_text(["once"])
    expect(unsent(page)).to_have_count(0)
    assert held == []
    assert len(records(running_service, "twice")) == 1


def test_a_message_that_did_not_arrive_says_so_and_can_be_sent_again_or_discarded(
    tab: OpenTab, context: BrowserContext, running_service: ServiceProcess
) -> None:
    page = tab("ada", "unsent")
    context.route("**/topics/*", lambda route: route.abort())
    send(page, "first")
    expect(unsent(page)).to_contain_text(["Not sent: the service cannot be reached."])
    context.route("**/topics/*", lambda route: route.fulfill(status=503, headers={"Retry-After": "1"}))
    send(page, "second")
    expect(unsent(page).nth(1)).to_contain_text("Not sent: the service is busy.")
    # A reload loses neither of them.
    page.reload()
    expect(unsent(page)).to_contain_text(["first", "second"])
    context.unroute("**/topics/*")
    unsent(page).nth(1).get_by_role("button", name="Discard").click()
    unsent(page).get_by_role("button", name="Send again").click()
    expect(messages(page)).to_have_text(["first"])
    expect(unsent(page)).to_have_count(0)
    assert [record["text"] for record in records(running_service, "unsent")] == ["first"]


def test_a_message_whose_answer_was_lost_is_shown_once_also_when_it_is_sent_again(
    tab: OpenTab, context: BrowserContext, running_service: ServiceProcess
) -> None:
    page = tab("ada", "lost")

    def lose_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    context.route("**/topics/*", lose_answer)
    send(page, "hello")
    expect(messages(page)).to_have_text(["hello"])
    expect(unsent(page)).to_have_count(0)
    (record,) = records(running_service, "lost")
    post(running_service, "lost", record, "the next one")
    expect(messages(page)).to_have_text(["hello", '"the next one"'])


def test_a_refusal_is_told_in_the_words_of_the_service(tab: OpenTab, context: BrowserContext) -> None:
    page = tab("ada", "refused")
    context.route("**/topics/*", lambda route: route.fulfill(status=403, json={"detail": "no more topics"}))
    send(page, "hello")
    expect(unsent(page)).to_contain_text(["Not sent: no more topics."])


def test_a_draft_is_kept_for_each_topic_and_on_a_reload(tab: OpenTab) -> None:
    page = tab("ada", "drafts")
    field = page.get_by_label("Message", exact=True)
    field.fill("half a sent")
    open_topic(page, "other")
    expect(field).to_have_value("")
    open_topic(page, "drafts")
    expect(field).to_have_value("half a sent")
    page.reload()
    expect(field).to_have_value("half a sent")
    field.press("Enter")
    page.reload()
    expect(field).to_have_value("")


def test_the_feed_follows_its_end_also_after_the_window_has_shrunk(
    tab: OpenTab, running_service: ServiceProcess
) -> None:
    page = tab("ada", "shrinking")
    page.set_viewport_size({"width": 1200, "height": 800})
    fill_feed(page, running_service, "shrinking")
    page.set_viewport_size({"width": 1200, "height": 500})
    page.wait_for_function("document.getElementById('feed').clientHeight < 500")
    page.wait_for_function(f"{BELOW} < 1")
    post(running_service, "shrinking", "the last one")
    expect(messages(page)).to_have_count(41)
    assert below(page) < 1


def test_new_messages_are_marked_and_counted_while_the_end_is_not_in_view(
    tab: OpenTab, running_service: ServiceProcess
) -> None:
    page = tab("ada", "reading")
    fill_feed(page, running_service, "reading")
    expect(page.locator("#to-end")).to_be_hidden()
    page.locator("#feed").evaluate("feed => { feed.scrollTop = 0; }")
    expect(page.locator("#to-end")).to_have_text("To the end \u2193")
    post(running_service, "reading", "one", "two")
    expect(page.locator("#to-end")).to_have_text("2 new \u2193")
    assert page.title() == "(2) reading \u2013 Topics"
    expect(page.locator(".marker + .message")).to_contain_text("one")
    assert page.locator("#feed").evaluate("feed => feed.scrollTop") == 0
    page.locator("#to-end").click()
    expect(page.locator("#to-end")).to_be_hidden()
    assert below(page) < 1
    assert page.title() == "reading \u2013 Topics"


def test_what_came_while_the_topic_was_closed_is_marked(
    tab: OpenTab, running_service: ServiceProcess
) -> None:
    page = tab("ada", "away")
    post(running_service, "away", "old")
    expect(messages(page)).to_have_count(1)
    open_topic(page, "other")
    expect(messages(page)).to_have_count(0)
    post(running_service, "away", "new", "newer")
    open_topic(page, "away")
    expect(page.locator(".marker + .message")).to_contain_text("new")
    # What comes in view is not.
    post(running_service, "away", "newest")
    expect(messages(page)).to_have_count(4)
    expect(page.locator(".marker + .message")).to_contain_text("new")
    expect(page.locator(".marker")).to_have_count(1)
    page.reload()
    expect(messages(page)).to_have_count(4)
    post(running_service, "away", "after the reload")
    expect(messages(page)).to_have_count(5)
    expect(page.locator(".marker")).to_have_count(0)


@pytest.mark.usefixtures("without_worker")
def test_the_status_is_that_of_the_kind_of_request_that_works_worst(
    tab: OpenTab, context: BrowserContext, running_service: ServiceProcess
) -> None:
    page = tab("ada", "status")
    status = page.get_by_role("status")
    refusals: dict[str, dict[str, Any]] = {
        "the service is busy; trying again": {"status": 503, "headers": {"Retry-After": "9"}},
        "no; trying again": {"status": 422, "json": {"detail": [{"msg": "no"}]}},
    }
    for reason, refusal in refusals.items():
        context.route("**/news?*", lambda route: route.fulfill(**refusal))  # noqa: B023 - used in this round
        open_topic(page, f"status-{len(reason)}")
        expect(status).to_have_text(reason)
        # A heartbeat that works does not hide that the feed is dead.
        with page.expect_response("**/presence/*") as heartbeat:
            page.get_by_label("Name").fill(f"ada {len(reason)}")
            page.get_by_label("Name").press("Tab")
        heartbeat.value.finished()
        page.evaluate("new Promise((resolve) => setTimeout(resolve))")
        assert status.text_content() == reason
        context.unroute("**/news?*")
        page.evaluate("dispatchEvent(new Event('online'))")
        expect(status).to_have_text("live")
    context.route("**/presence/*", lambda route: route.abort())
    page.get_by_label("Name").fill("bob")
    page.get_by_label("Name").press("Tab")
    expect(status).to_have_text("bob is not shown as online: the service cannot be reached")
    send(page, "hello")
    expect(messages(page)).to_have_text(["hello"])
    expect(status).to_have_text("bob is not shown as online: the service cannot be reached")


@pytest.mark.usefixtures("without_worker")
def test_a_request_without_an_answer_is_sent_again(
    tab: OpenTab, context: BrowserContext, running_service: ServiceProcess
) -> None:
    post(running_service, "hanging", {"from": "bob", "text": "hello"})
    unanswered: list[Route] = []
    context.route("**/news?*", lambda route: unanswered.append(route), times=1)
    # The first timeout is that of the first heartbeat, and the second one that of the poll.
    context.add_init_script(
        "const times = [10_000, 100], timeout = AbortSignal.timeout.bind(AbortSignal);"
        "AbortSignal.timeout = (usual) => timeout(times.shift() ?? usual);"
    )
    page = tab("ada", "hanging")
    expect(messages(page)).to_have_text(["hello"])
    unanswered.pop().fulfill()


@pytest.mark.long
def test_after_a_restart_of_the_service_the_tabs_go_on(
    context: BrowserContext, start_service: StartService
) -> None:
    with start_service() as service:
        port = str(service.port)
        tabs = [context.new_page() for _ in range(2)]
        for page in tabs:
            page.goto(f"{service.url}/#restart")
            expect(page.get_by_role("status")).to_have_text("live")
        send(tabs[0], "before")
        expect(messages(tabs[1])).to_have_text(["before"])
    for page in tabs:
        expect(page.get_by_role("status")).to_have_text("the service cannot be reached; trying again")
    send(tabs[0], "meanwhile")
    expect(unsent(tabs[0])).to_contain_text(["Not sent: the service cannot be reached."])
    with start_service("--port", port):
        for page in tabs:
            expect(page.get_by_role("status")).to_have_text("live")
        tabs[0].get_by_role("button", name="Send again").click()
        for page in tabs:
            # The records of the first run are gone.
            expect(messages(page)).to_have_text(["meanwhile"])
            page.close()


def test_an_address_without_a_valid_topic_opens_the_lobby_and_says_so(tab: OpenTab) -> None:
    page = tab("ada", "my topic")
    page.set_viewport_size({"width": 380, "height": 800})
    for address in ("my topic", "100%", "a/b", "-", "x" * 65):
        page.goto(f"/#{address}")
        message = f"{address} is not a valid topic name; this is the lobby."
        expect(page.get_by_role("alert")).to_have_text(message)
        expect(page.get_by_label("Topic", exact=True)).to_have_value("lobby")
        assert page.title() == "lobby \u2013 Topics"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_page_is_accessible_and_fits_on_wide_and_narrow_screens(
    tab: OpenTab, context: BrowserContext, running_service: ServiceProcess
) -> None:
    page = tab("ada", "layout")
    for topic in ("layout", "random", "a-topic-with-a-name-that-has-to-be-broken-into-several-lines-12"):
        post(running_service, topic, {"from": "bob", "text": "Good morning!", "at": "2026-03-01T09:05:00Z"})
    post(running_service, "layout", {"temperature": 21.5})
    send(page, "A message that is long enough to be broken into several lines on a narrow screen. " * 3)
    expect(messages(page)).to_have_count(3)
    context.route("**/topics/*", lambda route: route.abort())
    send(page, "This one does not arrive.")
    expect(unsent(page)).to_contain_text(["Not sent"])
    for width in (380, 1200):
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
    # On a narrow screen the lists are closed.
    page.set_viewport_size({"width": 380, "height": 800})
    page.keyboard.press("Tab")
    reached = []
    for _ in range(11):
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.firstChild.data"))
        page.keyboard.press("Tab")
    assert reached == [
        *("Dashboard", "Metrics", "API", "topic", "Open", "All topics ", "feed", "name", "text", "Send"),
        "Online ",
    ]
