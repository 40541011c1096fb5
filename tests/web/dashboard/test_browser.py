"""The page in a browser."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # has no types
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from purgatory import Purgatory
from tests.operations import Gate, raising
from tests.web.dashboard.host import Host

pytestmark = pytest.mark.real_time

MARKUP = "<script>window.harmed = 1</script><img src=nothing onerror='window.harmed = 1'>"


class Markup(Gate):
    def __repr__(self) -> str:
        return MARKUP


Markup.__name__ = MARKUP


def fill(purgatory: Purgatory) -> None:
    """Add operations with each outcome, and some that stay pending for longer than these tests take."""
    purgatory.try_complete_else_watch(Markup(None), [MARKUP])
    for number in range(200):
        gate = purgatory.try_complete_else_watch(Gate(1000 + number % 97), [f"key {number % 23}", "all"])
        gate.opened = number % 3 == 0
        if number % 20 == 0:
            gate.cancel()
    purgatory.check_and_complete("all")
    purgatory.try_complete_else_watch(Gate(0), ["all"])
    failing = Markup(None, trying=raising(ValueError(MARKUP)))
    failed = purgatory.try_complete_else_watch(failing, [MARKUP])
    assert failed.exception() is not None
    for _ in range(20):
        purgatory.try_complete_else_watch(Markup(None), [MARKUP])


@pytest.fixture(scope="module", autouse=True)
def filled_purgatories(host: Host) -> None:
    for purgatory in (host.first, host.second):
        host.on_loop(lambda purgatory=purgatory: fill(purgatory))  # type: ignore[misc]  # mypy#4226


@pytest.fixture
def open_page(browser: Browser, host: Host) -> Iterator[Callable[..., Page]]:
    """Opens the page. The test fails if the page has an error or sends a request to another server."""
    faults: list[str] = []
    contexts = []

    def open_page(width: int = 1440, **options: str) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)  # type: ignore[arg-type]  # named
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on(
            "request",
            lambda request: None if request.url.startswith(host.address) else faults.append(request.url),
        )
        page.goto(host.address)
        expect(page.locator("#state")).to_have_text("Live")
        # The first snapshot may be older than the changes by the previous test.
        expect(page.locator("#pending")).to_have_text(f"{host.on_loop(host.first.statistics).pending:,}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def figures(page: Page) -> dict[str, Any]:
    """The figures on the page, by the names of the fields of PurgatoryStatistics."""
    texts: dict[str, str] = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#figures dd')].map(dd => [dd.id, dd.textContent]))"
    )
    return {name: None if text == "none" else int(text.replace(",", "")) for name, text in texts.items()}


def test_the_figures_of_a_store_of_messages_are_shown_only_where_there_is_one(
    open_page: Callable[..., Page],
) -> None:
    page = open_page()
    expect(page.locator("#messages-part")).to_be_hidden()
    store = [["Scheduled", 1234], ["<b>Dead letters</b>", 0]]
    snapshot = {**page.request.get(f"{page.url}data").json(), "messages": store}
    page.context.route("**/data*", lambda route: route.fulfill(json=snapshot))
    page.reload()
    expect(page.locator("#messages dt")).to_have_text(["Scheduled", "<b>Dead letters</b>"])
    expect(page.locator("#messages dd")).to_have_text(["1,234", "0"])


def test_the_figures_of_a_relay_are_shown_only_where_there_is_one(open_page: Callable[..., Page]) -> None:
    page = open_page()
    expect(page.locator("#relay-part")).to_be_hidden()
    relay = [["Connected", False], ["Heartbeat age in seconds", None], ["Signals", 1234]]
    snapshot = {**page.request.get(f"{page.url}data").json(), "relay": relay}
    page.context.route("**/data*", lambda route: route.fulfill(json=snapshot))
    page.reload()
    expect(page.locator("#relay dt")).to_have_text(["Connected", "Heartbeat age in seconds", "Signals"])
    expect(page.locator("#relay dd")).to_have_text(["no", "unknown", "1,234"])
    expect(page.locator("#relay .failed")).to_have_count(1)


def answer_once(context: BrowserContext, snapshot: dict[str, Any]) -> None:
    """Give a page this snapshot and no other, so that only time moves."""
    answers = [snapshot]
    context.route("**/data*", lambda route: route.fulfill(json=answers.pop()) if answers else route.abort())


def test_the_figures_follow_the_statistics(open_page: Callable[..., Page], host: Host) -> None:
    page = open_page()
    assert figures(page) == asdict(host.on_loop(host.first.statistics))
    for many in (1_234, 5):
        host.on_loop(
            lambda many=many: [  # type: ignore[misc]  # mypy#4226
                host.first.try_complete_else_watch(Gate(1000), ["more"]) for _ in range(many)
            ]
        )
        now = host.on_loop(host.first.statistics)
        expect(page.locator("#pending")).to_have_text(f"{now.pending:,}")
        assert figures(page) == asdict(now)
        assert page.title() == f"{now.pending:,} pending · first"
    host.on_loop(lambda: host.first.cancel_for_key("more"))


def test_the_wheel_and_its_table_show_each_slot_and_level(open_page: Callable[..., Page], host: Host) -> None:
    page = open_page()

    def located() -> list[list[int]]:
        wheel = host.first.timer.wheel
        places = [wheel.locate(gate) for gate in host.first.operations() if gate.scheduled]
        return [
            [
                len({slot for level, slot in places if level == number}),
                sum(level == number for level, _ in places),
            ]
            for number in range(wheel.levels)
        ]

    rows = page.locator("#levels tbody tr")
    shown = [rows.nth(number).locator("td").all_text_contents() for number in range(rows.count())]
    expected = host.on_loop(located)
    assert [[occupied, load] for _, _, _, occupied, load in shown] == [
        [f"{occupied} of 32", str(load)] for occupied, load in expected
    ]
    assert page.locator("#wheel path[class*=load]").count() == sum(occupied for occupied, _ in expected)
    assert "operations in" in (page.locator("#wheel").get_attribute("aria-label") or "")


def test_overdue_slots_are_behind_the_hand_and_the_next_slot_is_the_one_that_expires(
    browser: Browser, host: Host
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        snapshot = page.request.get(f"{host.address}data").json()
        # The time is tick 74, and the wheel is still at tick 21.
        snapshot["wheel"] |= {"tick": 0.001, "now": 74.3, "wheel_now": 21, "size": 32, "tasks": 10}
        snapshot["wheel"] |= {"next_slot": 21, "wakeup": None}
        snapshot["wheel"]["levels"] = [[(20, 2), (21, 5), (30, 1)], [(2, 1), (3, 1)]]
        answer_once(context, snapshot)
        page.goto(host.address)
        slots = page.locator("#wheel path[class*=load]")
        expect(slots.locator("title")).to_have_text(
            [
                "Level 0, slot 20: 2 operations, began 22.3 ms ago",
                "Level 0, slot 21: 5 operations, began 53.3 ms ago",
                "Level 0, slot 30: 1 operation, began 44.3 ms ago",
                "Level 1, slot 2: 1 operation, began 10.3 ms ago",
                "Level 1, slot 3: 1 operation, begins in 21.7 ms",
            ]
        )
        # Only the slot that the hand has passed since the snapshot is marked; the overdue ones are not.
        expect(slots).to_have_class(["load-1", "load-1 next", "load-1", "load-1", "load-1 passed"])
        expect(page.locator("#wheel text")).to_have_text(["expiring", "now", ""])
        words = re.compile("; operations are expiring now")
        expect(page.locator("#wheel")).to_have_attribute("aria-label", words)


def hand_positions(page: Page) -> list[str]:
    """How far each hand has turned."""
    positions: list[str] = page.evaluate(
        "[...document.querySelectorAll('#wheel line.hand')].map((hand) => hand.getAttribute('transform'))"
    )
    return positions


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_hands_turn_between_two_snapshots_unless_reduced_motion_is_preferred(
    browser: Browser, host: Host, motion: Literal["no-preference", "reduce"]
) -> None:
    with browser.new_context(reduced_motion=motion) as context:
        page = context.new_page()
        answer_once(context, page.request.get(f"{host.address}data").json())
        page.clock.install()
        page.goto(host.address)
        expect(page.locator("#wheel line.hand")).not_to_have_count(0)
        page.clock.pause_at(page.evaluate("Date.now() / 1000") + 1)
        before = hand_positions(page)
        page.clock.run_for(500)
        assert (hand_positions(page) != before) is (motion == "no-preference")


def test_the_hands_turn_with_each_snapshot_also_with_reduced_motion(open_page: Callable[..., Page]) -> None:
    page = open_page(reduced_motion="reduce")
    hand = page.locator("#wheel line.hand").nth(1)
    expect(hand).not_to_have_attribute("transform", hand.get_attribute("transform") or "")


def test_markup_in_keys_names_and_errors_is_shown_as_text(open_page: Callable[..., Page]) -> None:
    page = open_page()
    for part in ("hottest", "oldest", "failures"):
        expect(page.locator(f"#{part} tbody")).to_contain_text("<script>window.harmed")
    assert page.locator("main script, main img").count() == 0
    assert page.evaluate("window.harmed") is None


def test_an_old_operation_is_shown_with_age_tries_and_time_left(open_page: Callable[..., Page]) -> None:
    (row,) = [
        row.locator("td").all_text_contents()
        for row in open_page().locator("#oldest tr").all()
        if "'key 1'," in row.inner_text()
    ][:1]
    operation, age, tries, due = row
    assert operation == "Gate 'key 1', 'all'"
    assert re.fullmatch(r"[\d.]+ m?s|\d min \d+ s", age)
    assert tries == "2"
    assert re.fullmatch(r"1[56] min \d+ s", due)


def test_the_page_of_each_purgatory_can_be_reached_by_keyboard(
    open_page: Callable[..., Page], host: Host
) -> None:
    page = open_page()
    expect(page.locator("nav a[aria-current]")).to_contain_text("first")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#name")).to_have_text("<b>second</b>")
    expect(page.locator("nav a[aria-current]")).to_contain_text("second")
    assert page.url == f"{host.address}?purgatory=1"
    assert figures(page) == asdict(host.on_loop(host.second.statistics))


def test_the_page_pauses_and_continues_by_keyboard(open_page: Callable[..., Page], host: Host) -> None:
    page = open_page()
    held: list[Route] = []
    page.route("**/data*", lambda route: held.append(route))
    with page.expect_request("**/data*"):
        host.on_loop(lambda: host.first.try_complete_else_watch(Gate(1000), ["paused"]))
    page.locator("#pause").focus()
    page.keyboard.press("Space")
    expect(page.locator("#state")).to_have_text("Paused")
    expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")
    before = figures(page)
    # The response to the poll that was under way arrives, and is not shown.
    host.on_loop(lambda: host.first.try_complete_else_watch(Gate(1000), ["paused"]))
    with page.expect_response("**/data*") as response:
        held[0].continue_()
    page.unroute_all()
    pending = host.on_loop(host.first.statistics).pending
    assert response.value.json()["statistics"]["pending"] == pending > before["pending"]
    page.evaluate("new Promise((resolve) => setTimeout(resolve))")
    assert figures(page) == before
    page.keyboard.press("Space")
    expect(page.locator("#pending")).to_have_text(f"{pending:,}")
    expect(page.locator("#state")).to_have_text("Live")
    host.on_loop(lambda: host.first.cancel_for_key("paused"))


def test_the_page_reports_a_lost_server_and_continues_when_it_is_back(browser: Browser, host: Host) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install()
        page.goto(host.address)
        expect(page.locator("#state")).to_have_text("Live")
        context.route("**/data*", lambda route: route.abort())
        expect(page.locator("#state")).to_have_text("No connection; trying again")
        context.unroute_all()
        context.route("**/data*", lambda route: route.fulfill(status=403))
        # The page waits for two seconds before each new request.
        page.clock.fast_forward(2_000)
        expect(page.locator("#state")).to_contain_text("The server answers 403")
        context.unroute_all()
        page.clock.fast_forward(2_000)
        expect(page.locator("#state")).to_have_text("Live")


def test_the_page_reports_a_blocked_event_loop_and_continues_when_it_is_free(
    browser: Browser, host: Host
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install()
        page.goto(host.address)
        expect(page.locator("#state")).to_have_text("Live")
        free = threading.Event()
        host.up.result(10).call_soon_threadsafe(free.wait, 60)
        try:
            page.clock.fast_forward(5_000)
            # A page that sent its request later waits for the rest of the five seconds.
            expect(page.locator("#state")).to_have_text(
                "No answer for 5 s: the event loop may be blocked; trying again", timeout=20_000
            )
        finally:
            free.set()
        page.clock.fast_forward(2_000)
        expect(page.locator("#state")).to_have_text("Live", timeout=10_000)


def test_an_error_in_the_page_is_not_reported_as_a_lost_connection(browser: Browser, host: Host) -> None:
    faults: list[str] = []
    with browser.new_context() as context:
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        context.route("**/data*", lambda route: route.fulfill(json={"version": 1}))
        page.goto(host.address)
        expect(page.locator("#state")).to_contain_text("This page has a fault: ")
        expect(page.locator("#state")).to_contain_text("; reload it")
    assert faults


@pytest.mark.parametrize("width", [380, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_the_screen_and_is_accessible(
    open_page: Callable[..., Page], width: int, scheme: str
) -> None:
    page = open_page(width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    found = Axe().run(page).response["violations"]
    assert [(fault["id"], fault["impact"], fault["help"]) for fault in found] == []
