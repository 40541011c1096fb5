"""The page in a browser."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # has no types
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from purgatory import Purgatory, PurgatoryStatistics
from purgatory._core.timer import DEFAULT_WHEEL_SIZE
from purgatory._figures.messages import MESSAGE_FIGURES
from purgatory._figures.relay import RELAY_FIGURES
from purgatory.observer import OUTCOMES
from tests.operations import Gate, raising
from tests.shown import DURATIONS
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
    texts = {
        field.name: page.locator(f"#{field.name}").text_content() or ""
        for field in fields(PurgatoryStatistics)
    }
    for field in ("refused", "failed"):
        # The last minute is the figure, and the total is below it.
        more = page.locator(f"#more-{field}").text_content() or ""
        texts[field] = re.search(r"; ([\d,]+) since", more)[1]  # type: ignore[index]  # it is there
    return {name: None if text == "none" else int(text.replace(",", "")) for name, text in texts.items()}


def snapshot(page: Page, host: Host) -> dict[str, Any]:
    """A snapshot of the first purgatory, for a test to change."""
    return page.request.get(f"{host.address}data").json()  # type: ignore[no-any-return]  # JSON


def answer(context: BrowserContext, *snapshots: dict[str, Any]) -> None:
    """Answer the next requests of a page with these snapshots, and refuse the later ones.

    A page asks once a second, so a test can rely on what the last of them shows only.
    """
    answers = list(snapshots)
    context.route("**/data*", lambda route: route.fulfill(json=answers.pop(0)) if answers else route.abort())


def test_the_figures_of_a_store_of_messages_are_shown_only_where_there_is_one(
    open_page: Callable[..., Page], host: Host
) -> None:
    page = open_page()
    expect(page.locator("#messages-part")).to_be_hidden()
    store = [[figure.title, 1000 + number] for number, figure in enumerate(MESSAGE_FIGURES)]
    shown = {**snapshot(page, host), "messages": store}
    page.context.route("**/data*", lambda route: route.fulfill(json=shown))
    page.reload()
    expect(page.locator("#messages dt")).to_have_text([figure.title for figure in MESSAGE_FIGURES])
    values = [f"1,{number:03}" for number in range(len(MESSAGE_FIGURES))]
    expect(page.locator("#messages .value")).to_have_text(values)


def test_the_figures_of_a_relay_are_shown_only_where_there_is_one(
    open_page: Callable[..., Page], host: Host
) -> None:
    page = open_page()
    expect(page.locator("#relay-part")).to_be_hidden()
    values = [False, None, *range(1000, 1000 + len(RELAY_FIGURES) - 2)]
    relay = [[figure.title, value] for figure, value in zip(RELAY_FIGURES, values, strict=True)]
    shown = {**snapshot(page, host), "relay": relay}
    page.context.route("**/data*", lambda route: route.fulfill(json=shown))
    page.reload()
    expect(page.locator("#relay dt")).to_have_text([figure.title for figure in RELAY_FIGURES])
    expect(page.locator("#relay-connected")).to_have_text("no")
    expect(page.locator("#relay-heartbeat_age")).to_have_text("unknown")
    expect(page.locator("#relay-generation")).to_have_text("1,000")
    expect(page.locator("#relay .alarm")).to_have_count(1)


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
    host.on_loop(lambda: host.first.cancel_for_key("more"))


def open_internals(page: Page) -> None:
    page.get_by_text("Internals").click()


def test_the_wheel_and_its_table_show_each_slot_and_level(open_page: Callable[..., Page], host: Host) -> None:
    page = open_page()
    open_internals(page)
    expect(page.locator("#levels tbody tr")).not_to_have_count(0)

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
        [f"{occupied} of {DEFAULT_WHEEL_SIZE}", str(load)] for occupied, load in expected
    ]
    assert page.locator("#wheel path[class*=load]").count() == sum(occupied for occupied, _ in expected)
    assert "operations in" in (page.locator("#wheel").get_attribute("aria-label") or "")


def test_overdue_slots_are_behind_the_hand_and_the_next_slot_is_the_one_that_expires(
    browser: Browser, host: Host
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        shown = snapshot(page, host)
        # The time is tick 74, and the wheel is still at tick 21.
        shown["wheel"] |= {"tick": 0.001, "now": 74.3, "wheel_now": 21, "size": 32, "tasks": 10}
        shown["wheel"] |= {"next_slot": 21, "wakeup": None}
        shown["wheel"]["levels"] = [[(20, 2), (21, 5), (30, 1)], [(2, 1), (3, 1)]]
        answer(context, shown)
        page.goto(host.address)
        open_internals(page)
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
        answer(context, snapshot(page, host))
        page.clock.install()
        page.goto(host.address)
        open_internals(page)
        expect(page.locator("#wheel line.hand")).not_to_have_count(0)
        page.clock.pause_at(page.evaluate("Date.now() / 1000") + 1)
        before = hand_positions(page)
        page.clock.run_for(500)
        assert (hand_positions(page) != before) is (motion == "no-preference")


def test_the_hands_turn_with_each_snapshot_also_with_reduced_motion(open_page: Callable[..., Page]) -> None:
    page = open_page(reduced_motion="reduce")
    open_internals(page)
    hand = page.locator("#wheel line.hand").nth(1)
    expect(hand).not_to_have_attribute("transform", hand.get_attribute("transform") or "")


def test_markup_in_keys_names_and_errors_is_shown_as_text(open_page: Callable[..., Page]) -> None:
    page = open_page()
    for part in ("hottest", "operations", "failures"):
        expect(page.locator(f"#{part} tbody")).to_contain_text("<script>window.harmed")
    assert page.locator("main script, main img").count() == 0
    assert page.evaluate("window.harmed") is None


def rows(page: Page, table: str) -> list[list[str]]:
    """The texts of the cells of a table."""
    return [row.locator("td").all_text_contents() for row in page.locator(f"#{table} tbody tr").all()]


def test_an_old_operation_is_shown_with_age_tries_and_time_left(open_page: Callable[..., Page]) -> None:
    page = open_page()
    operation, age, tries, due = next(row for row in rows(page, "operations") if "'key 1'," in row[0])
    assert operation == "Gate 'key 1', 'all'"
    assert re.fullmatch(r"[\d.]+ m?s|\d min \d+ s", age)
    assert tries == "2 tries"
    assert re.fullmatch(r"1[56] min \d+ s", due)


def test_the_page_of_each_purgatory_has_its_name_in_the_address_and_can_be_reached_by_keyboard(
    open_page: Callable[..., Page], host: Host
) -> None:
    page = open_page()
    expect(page.locator("nav a[aria-current]")).to_contain_text("first")
    # The button Pause, the purgatory in the sentence above, and the first of the links.
    for _ in range(2):
        page.keyboard.press("Tab")
    page.locator("nav a").nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#name")).to_have_text("<b>second</b>")
    expect(page.locator("nav a[aria-current]")).to_contain_text("second")
    assert page.url == f"{host.address}?purgatory=%3Cb%3Esecond%3C%2Fb%3E"
    assert figures(page) == asdict(host.on_loop(host.second.statistics))


def test_a_screen_reader_reads_the_name_of_a_purgatory_apart_from_its_figure(
    open_page: Callable[..., Page], host: Host
) -> None:
    page = open_page()
    pending = host.on_loop(host.first.statistics).pending
    expect(page.get_by_role("link", name=re.compile(f"^first {pending} pending ?, "))).to_be_visible()


def test_a_single_purgatory_has_no_tab(browser: Browser, host: Host) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        shown = snapshot(page, host)
        answer(context, {**shown, "health": shown["health"][:1]})
        page.goto(host.address)
        expect(page.locator("#name")).to_have_text("first")
        expect(page.locator("nav")).to_be_hidden()
        expect(page.locator("nav a")).to_have_count(0)


def test_of_an_unknown_purgatory_the_page_says_so_and_does_not_ask_again(
    browser: Browser, host: Host
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if "/data" in request.url else None)
        page.goto(f"{host.address}?purgatory=9")
        expect(page.locator("#bar")).to_have_text("There is no purgatory 9 here. Choose one of these.")
        page.clock.run_for(60_000)
        assert len(asked) == 1
        page.get_by_role("link", name="first").click()
        expect(page.locator("#state")).to_have_text("Live")
        context.route("**/data*", lambda route: route.fulfill(status=404, json={"purgatories": ["only"]}))
        page.reload()
        expect(page.get_by_role("link", name="only")).to_be_visible()


# The figures that an operator asks for first


WELL = {"fullness": "", "refused": 0, "refused_in": 61.0, "failed": 0, "missed": 0, "connected": None}


def healthy(name: str, **alarms: object) -> dict[str, object]:
    """The health of a purgatory, as a snapshot has it."""
    return {"name": name, "pending": 0, **WELL, **alarms}


@pytest.mark.parametrize(
    ("health", "sentence", "tabs"),
    [
        ([healthy("first")], "All is well.", []),
        ([healthy("first"), healthy("polls")], "Both are well.", ["first", "polls"]),
        (
            [healthy("first"), healthy("polls"), healthy("seats")],
            "All three are well.",
            ["first", "polls", "seats"],
        ),
        (
            [
                healthy("first"),
                healthy("polls"),
                healthy("seats", pending=50, fullness="full", refused=637, failed=110),
            ],
            "seats: full, 637 refused and 110 failed in the last minute. first, polls: well.",
            ["first", "polls", "seats, full, refusing, failing"],
        ),
        (
            [
                healthy("first", fullness="nearly full"),
                healthy("polls", refused=7, refused_in=200.0, failed=1),
            ],
            "polls: 7 refused in the last 3 min 20 s, 1 failed in the last minute. first: nearly full.",
            ["first, nearly full", "polls, refusing, failing"],
        ),
        (
            [healthy("first", missed=3, connected=False)],
            "first: 3 changes missed, the relay is not connected.",
            [],
        ),
    ],
)
def test_one_sentence_says_how_all_purgatories_are_the_worst_first(
    browser: Browser, host: Host, health: list[dict[str, object]], sentence: str, tabs: list[str]
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        shown = snapshot(page, host) | {"stalls": [0.01] * 60}
        answer(context, shown | {"health": health})
        page.goto(host.address)
        expect(page.locator("#health")).to_have_text(sentence)
        expect(page.locator("#spoken")).to_have_text(sentence)
        links = page.locator("nav a")
        expect(links).to_have_count(len(tabs))
        assert [re.sub(r" \d+ pending", "", text) for text in links.all_text_contents()] == tabs
        icon = "icon.svg" if "well." in sentence and ":" not in sentence else "icon-alarm.svg"
        expect(page.locator("#icon")).to_have_attribute("href", icon)
        assert page.title().startswith("\u25b2 ") is (icon == "icon-alarm.svg")


def test_a_blocked_loop_is_an_alarm_and_a_slow_one_is_a_warning(browser: Browser, host: Host) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        shown = snapshot(page, host) | {"health": [healthy("first")]}
        snapshots = [
            shown | {"stalls": [None] * 59 + [stall], "version": str(stall)} for stall in (14.0, 0.2)
        ]
        answers = [snapshots[0]]
        context.route("**/data*", lambda route: route.fulfill(json=answers[0]))
        page.goto(host.address)
        expect(page.locator("#health")).to_have_text("The event loop: blocked for up to 14.0 s. first: well.")
        expect(page.locator("#health")).to_have_class("alarm")
        expect(page.locator("#card-worst_stall")).to_have_class("card alarm")
        expect(page.locator("#card-worst_stall dd")).to_contain_text("blocked, in 1 measured second")
        assert page.title() == "\u25b2 the event loop: blocked"
        answers[0] = snapshots[1]
        expect(page.locator("#health")).to_have_text("The event loop: slow for up to 200 ms. first: well.")
        expect(page.locator("#card-worst_stall")).to_have_class("card warning")


def test_more_than_six_purgatories_are_a_menu_with_a_search(browser: Browser, host: Host) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        health = [healthy("first"), *(healthy(f"room {number}") for number in range(6))]
        shown = snapshot(page, host) | {"health": health}
        context.route("**/data*", lambda route: route.fulfill(json=shown))
        page.goto(host.address)
        page.get_by_text("7 purgatories").click()
        expect(page.locator("nav a")).to_have_count(7)
        page.get_by_role("searchbox", name="Search the purgatories").fill("ROOM 3")
        expect(page.get_by_role("link", name="room 3")).to_be_visible()
        expect(page.get_by_role("link", name="room 4")).to_be_hidden()
        # The next snapshot leaves what is written into the search.
        with page.expect_response("**/data*"):
            pass
        expect(page.get_by_role("link", name="room 4")).to_be_hidden()


def test_a_full_purgatory_is_seen_at_once(browser: Browser, host: Host) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        shown = snapshot(page, host)
        shown["statistics"] |= {"pending": 50, "max_pending": 50, "refused": 460}
        full = healthy("first", pending=50, fullness="full", refused=10)
        answer(context, shown | {"health": [full], "since": None})
        page.goto(host.address)
        expect(page.locator("#card-pending dd")).to_contain_text("50 full, of 50")
        expect(page.locator("#card-pending")).to_have_class("card alarm")
        expect(page.locator("#refused")).to_have_text("10")
        expect(page.locator("#more-refused")).to_contain_text("refusing, in the last minute; 460")
        expect(page.locator("#card-refused")).to_have_class("card alarm")


def test_a_missed_change_is_an_alarm(browser: Browser, host: Host) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        shown = snapshot(page, host)
        shown["statistics"] |= {"missed_changes": 3}
        answer(context, shown | {"health": [healthy("first", missed=3)]})
        page.goto(host.address)
        open_internals(page)
        expect(page.locator("#missed_changes")).to_have_text("3")
        expect(page.locator("#card-missed_changes")).to_have_class("card alarm")


def test_what_is_well_has_no_colour_of_alarm(browser: Browser, host: Host) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        shown = snapshot(page, host) | {"health": [healthy("first")], "stalls": [0.01] * 60, "failures": []}
        shown["statistics"] |= {"pending": 10, "max_pending": 50, "refused": 0, "failed": 0}
        # Long polls on quiet keys expire like this.
        shown["statistics"] |= {"expired": 1000, "expired_untried": 1000}
        answer(context, shown)
        page.goto(host.address)
        expect(page.locator("#card-pending dd")).to_contain_text("10 of 50")
        expect(page.locator("#failed")).to_have_text("0")
        expect(page.locator("#expired_untried")).to_have_text("1,000")
        expect(page.locator(".alarm, .warning")).to_have_count(0)
        colours = page.evaluate(
            "[...document.querySelectorAll('.value')].map((each) => getComputedStyle(each).color)"
        )
        assert len(set(colours)) == 1
        expect(page.locator("#failures-part")).to_be_hidden()


def test_totals_say_since_when_they_count(browser: Browser, host: Host) -> None:
    with browser.new_context(timezone_id="UTC") as context:
        page = context.new_page()
        now = datetime(2026, 3, 2, 3, 0, 0, tzinfo=UTC).timestamp()
        shown = snapshot(page, host) | {"time": now, "now": 5000.0}
        answers = [shown | {"since": 1400.0}]
        context.route("**/data*", lambda route: route.fulfill(json=answers[-1]))
        page.goto(host.address)
        expect(page.locator("#more-wakeups")).to_have_text("since 02:00:00")
        # On another day.
        answers.append(shown | {"since": 5000.0 - 4 * 3600, "version": "later"})
        expect(page.locator("#more-wakeups")).to_have_text("since 2026-03-01 23:00:00")
        expect(page.locator("#since")).to_have_text("Totals count since 2026-03-01 23:00:00.")


def test_one_button_explains_all_figures_and_the_pointer_explains_one(open_page: Callable[..., Page]) -> None:
    page = open_page()
    abouts = page.locator("#figures-part .about")
    expect(abouts.first).to_be_hidden()
    page.get_by_role("link", name="Refused").hover()
    expect(page.locator("#about-refused")).to_be_visible()
    expect(page.locator("#about-failed")).to_be_hidden()
    explain = page.get_by_role("button", name="Explain the figures")
    explain.focus()
    page.keyboard.press("Enter")
    expect(explain).to_have_attribute("aria-pressed", "true")
    for about in abouts.all():
        expect(about).to_be_visible()
    page.keyboard.press("Enter")
    page.mouse.move(0, 0)
    for about in abouts.all():
        expect(about).to_be_hidden()


def test_each_of_the_first_figures_leads_to_its_part(open_page: Callable[..., Page]) -> None:
    page = open_page()
    parts = {"Pending": "operations", "Refused": "rates", "Failed": "failures", "Oldest": "operations"}
    for name, part in {**parts, "Worst stall": "stalls"}.items():
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.locator(f"#{part}-part")).to_be_in_viewport()
        assert page.url.endswith(f"#{part}-part")


def test_a_small_screen_answers_the_first_questions_without_scrolling(
    open_page: Callable[..., Page],
) -> None:
    page = open_page(320)
    cards = page.locator(".lead .card")
    expect(cards).to_have_count(5)
    bottoms = [box["y"] + box["height"] for box in (card.bounding_box() for card in cards.all()) if box]
    assert max(bottoms) <= 640
    assert len(bottoms) == 5
    # The header is one line.
    header = page.locator("header").bounding_box()
    assert header is not None
    assert header["height"] <= 48
    expect(page.locator("#wheel")).to_be_hidden()
    open_internals(page)
    expect(page.locator("#wheel path[class*=load]").first).to_be_visible()


def test_equal_failures_are_one_row_with_the_time_of_day_and_can_be_copied(
    browser: Browser, host: Host
) -> None:
    with browser.new_context(timezone_id="UTC", permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        failure = {"kind": "Fetch", "keys": ["'a'", "'b'"], "error": "OSError('full')", "count": 1234}
        now = datetime(2026, 3, 2, 3, 0, 0, tzinfo=UTC).timestamp()
        shown = snapshot(page, host) | {"time": now, "now": 5000.0}
        answer(context, shown | {"failures": [failure | {"first": 4000.0, "last": 4999.0}]})
        page.goto(host.address)
        expect(page.locator("#failures tbody tr")).to_have_count(1)
        assert rows(page, "failures") == [
            ["Fetch last on 'a', 'b'", "OSError('full')", "1,234", "02:59:59, first 02:43:20", "Copy"]
        ]
        text = "Fetch, last on 'a', 'b': OSError('full') (1,234 times, last at 02:59:59, first 02:43:20)"
        page.get_by_role("button", name="Copy").click()
        expect(page.locator("#copied")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == text
        # Over plain HTTP, browsers have no such object.
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.evaluate("addEventListener('copy', () => { window.copied = document.activeElement.value; })")
        page.get_by_role("button", name="Copy").click()
        page.wait_for_function("window.copied")
        assert page.evaluate("window.copied") == text
        expect(page.get_by_role("button", name="Copy")).to_be_focused()


def test_a_failure_without_a_key_is_copied_without_one(browser: Browser, host: Host) -> None:
    with browser.new_context(timezone_id="UTC") as context:
        page = context.new_page()
        failure = {"kind": "DelayedValue", "keys": [], "error": "OSError('full')", "count": 1}
        now = datetime(2026, 3, 2, 3, 0, 0, tzinfo=UTC).timestamp()
        shown = snapshot(page, host) | {"time": now, "now": 5000.0}
        answer(context, shown | {"failures": [failure | {"first": 4999.0, "last": 4999.0}]})
        page.goto(host.address)
        text = "DelayedValue: OSError('full') (once, last at 02:59:59)"
        expect(page.get_by_role("button", name="Copy")).to_have_attribute("data-text", text)


def test_pointing_at_a_chart_shows_its_values_and_they_stay_with_the_next_snapshot(
    browser: Browser, host: Host
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        shown = snapshot(page, host)
        shown["rates"]["ended"] = {outcome: [0] * 58 + [number, 0] for number, outcome in enumerate(OUTCOMES)}
        shown["rates"] |= {"checks": [0] * 58 + [1, 0], "tried": [0] * 58 + [7, 0]}
        shown["waits"]["completed"] |= {"counts": [0] * 5 + [12, 3] + [0] * 13}
        shown["stalls"] = [None] * 59 + [0.25]
        later = shown | {"version": "later", "rates": {**shown["rates"], "tried": [0] * 58 + [8, 0]}}
        held: list[Route] = []
        answers = [shown]

        def give(route: Route) -> None:
            if answers:
                route.fulfill(json=answers.pop())
            elif not held:
                held.append(route)
            else:
                route.abort()

        context.route("**/data*", give)
        with page.expect_request(lambda request: "version=" in request.url):
            page.goto(host.address)
        chart = page.locator("#rates")
        expect(chart.locator("svg")).to_be_visible()
        box = chart.bounding_box()
        assert box is not None
        chart.hover(position={"x": box["width"] * 58.5 / 60, "y": 60})
        value = page.locator("#rates-value")
        values = "2 seconds ago: 0 completed, 1 expired, 2 cancelled, 3 failed; 1 check, "
        expect(value).to_have_text(f"{values}7 tried")
        held[0].fulfill(json=later)
        expect(value).to_have_text(f"{values}8 tried")
        page.mouse.move(0, 0)
        expect(value).to_have_text("")
        # By keyboard, too.
        page.locator("#stalls").focus()
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#stalls-value")).to_have_text("1 second ago: 250 ms late")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#stalls-value")).to_have_text("2 seconds ago: not measured")
        page.locator("#waits").focus()
        expect(page.locator("#stalls-value")).to_have_text("")


def test_the_page_is_laid_out_once_for_a_snapshot(open_page: Callable[..., Page]) -> None:
    page = open_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def layouts() -> int:
        metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        return int(metrics["LayoutCount"])

    before = layouts()
    for _ in range(3):
        page.wait_for_event("response", lambda response: "/data" in response.url)
    # Each snapshot is one. The others are of the clock.
    assert layouts() - before <= 6


def test_a_selection_of_text_survives_the_next_snapshot(open_page: Callable[..., Page], host: Host) -> None:
    page = open_page()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#operations tbody td + td'))")
    selected = page.evaluate("getSelection().toString()")
    assert re.fullmatch(r"[\d.]+ m?s|\d min \d+ s", selected)
    host.on_loop(lambda: host.first.try_complete_else_watch(Gate(1000), ["selected"]))
    pending = host.on_loop(host.first.statistics).pending
    # The other parts go on.
    expect(page.locator("#pending")).to_have_text(f"{pending:,}")
    assert page.evaluate("getSelection().toString()") == selected
    expect(page.locator("#operations-part")).to_have_class("held")
    page.evaluate("getSelection().removeAllRanges()")
    expect(page.locator("#operations-part")).not_to_have_class("held")
    expect(page.locator("#operations tbody td + td").first).not_to_have_text(selected)
    host.on_loop(lambda: host.first.cancel_for_key("selected"))


# The operations of a key


def test_a_key_leads_to_its_operations_and_a_filter_narrows_them(
    open_page: Callable[..., Page], host: Host
) -> None:
    page = open_page()
    page.get_by_role("button", name="'key 3'", exact=True).click()
    operations = page.locator("#operations tbody tr")
    watching = len(host.on_loop(lambda: host.first.operations("key 3")))
    expect(operations).to_have_count(watching)
    for row in rows(page, "operations"):
        assert row[0] == "Gate 'key 3', 'all'"
    expect(page.get_by_role("textbox", name="Key")).to_have_value("'key 3'")
    # The address leads a colleague to the same operations.
    assert page.url == f"{host.address}?key=%27key+3%27"
    page.reload()
    expect(operations).to_have_count(watching)
    page.get_by_role("textbox", name="Name").fill("nothing")
    expect(page.locator("#operations tbody")).to_have_text("No such operation was found.")
    page.get_by_role("textbox", name="Name").fill("gat")
    expect(operations).to_have_count(watching)
    page.get_by_role("button", name="Clear").click()
    expect(operations).to_have_count(10)
    page.get_by_role("combobox", name="State").select_option("expired")
    expect(page.locator("#operations thead")).to_contain_text("Ended at")
    operation, _, tries, _ = rows(page, "operations")[0]
    assert (operation, tries) == ("Gate 'all'", "1 try, as it was offered")


def test_keys_are_ordered_by_watchers_or_by_tries(browser: Browser, host: Host) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        shown = snapshot(page, host)
        watched = {"key": "watched", "watchers": 16_000, "more": True, "tries": 0.5}
        tried = {"key": "tried", "watchers": 7, "more": False, "tries": 1234.56}
        idle = {"key": "idle", "watchers": 1, "more": False, "tries": None}
        shown["pending_sample"] |= {"hottest": [watched, tried, idle], "busiest": [tried, watched]}
        answer(context, shown)
        page.goto(host.address)
        first, second = ["watched", "16,000+", "0.5"], ["tried", "7", "1,200"]
        expect(page.locator("#hottest tbody tr")).to_have_count(3)
        assert rows(page, "hottest") == [first, second, ["idle", "1", "\N{EN DASH}"]]
        page.get_by_role("button", name="tries a second").click()
        assert rows(page, "hottest") == [second, first]


# The connection


def test_when_several_processes_answer_the_page_names_them_and_shows_one_of_them(
    browser: Browser, host: Host
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install()
        shown = snapshot(page, host)
        asked = 0

        def give(route: Route) -> None:
            nonlocal asked
            asked += 1
            pid = 1 + asked % 2
            route.fulfill(
                json=shown
                | {"version": str(asked), "process": {"instance": f"i-{pid}", "host": "blue", "pid": pid}}
                | {"statistics": shown["statistics"] | {"pending": 1000 * pid, "refused": 10 * pid}}
            )

        context.route("**/data*", give)
        with page.expect_response("**/data*"):
            page.goto(host.address)
        expect(page.locator("#processes-part")).to_be_hidden()
        start = asked
        for _ in range(10):
            with page.expect_response("**/data*"):
                page.clock.run_for(1_000)
        # At most one request a second. The clock of the page also runs by itself.
        assert asked - start <= 12
        expect(page.locator("#processes-part")).to_contain_text("Several processes answer here")
        # The second process has answered for the first time, but not in place of the first process.
        expect(page.locator("#restart")).to_be_hidden()
        buttons = page.locator("#processes button")
        expect(buttons).to_have_text(["blue, process 1", "blue, process 2"])
        assert [row[1] for row in rows(page, "processes")] == ["1,000", "2,000"]
        assert all(re.fullmatch(r"\d+ s ago", row[2]) for row in rows(page, "processes"))
        for pid in (1, 2):
            buttons.nth(pid - 1).click()
            for _ in range(4):
                with page.expect_response("**/data*"):
                    page.clock.run_for(1_000)
                if _ > 1:
                    expect(page.locator("#pending")).to_have_text(f"{pid},000")
                    expect(page.locator("#process")).to_have_text(f"process {pid}")


def test_a_process_that_replaces_another_one_is_shown_with_what_the_first_had_counted(
    browser: Browser, host: Host
) -> None:
    with browser.new_context(timezone_id="UTC") as context:
        page = context.new_page()
        now = datetime(2026, 3, 2, 0, 32, 15, tzinfo=UTC).timestamp()
        shown = snapshot(page, host) | {"time": now - 3}
        shown["process"] |= {"pid": 5}
        shown["statistics"] |= {"refused": 1065, "failed": 11}
        after = {"process": {"instance": "after", "host": "blue", "pid": 7}, "time": now}
        answer(context, shown, shown | after | {"version": "later"})
        page.goto(host.address)
        expect(page.locator("#process")).to_have_text("process 7")
        expect(page.locator("#processes-part")).to_be_hidden()
        expect(page.locator("#restart span")).to_have_text(
            "Restarted at 00:32:15 (process 5 to 7). Before: 1,065 refused, 11 failed."
        )
        expect(page.locator("#rates .restarted, #stalls .restarted")).to_have_count(2)
        page.get_by_role("button", name="Dismiss").click()
        expect(page.locator("#restart")).to_be_hidden()


LEFT_OF = """(text) => {
    const nodes = document.evaluate(".//text()", document.querySelector("#hottest code"), null, 7);
    for (let at = 0; at < nodes.snapshotLength; at++) {
        const node = nodes.snapshotItem(at);
        const start = node.data.indexOf(text);
        if (start < 0) continue;
        const range = document.createRange();
        range.setStart(node, start);
        range.setEnd(node, start + text.length);
        return range.getBoundingClientRect().left;
    }
}"""


def test_durations_are_written_as_in_the_report(open_page: Callable[..., Page]) -> None:
    write = "async (seconds) => (await import('./elements.js')).duration(seconds)"
    page = open_page()
    assert {each: page.evaluate(write, each / 1e6) for each in DURATIONS} == DURATIONS


def test_hebrew_in_a_key_leaves_the_order_of_what_is_around_it(browser: Browser, host: Host) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        shown = snapshot(page, host)
        key = "('order', '\u05e9\u05dc\u05d5\u05dd', 17)"
        hot = {"key": key, "watchers": 1, "more": False, "tries": None}
        shown["pending_sample"] |= {"hottest": [hot]}
        answer(context, shown)
        page.goto(host.address)
        code = page.locator("#hottest code")
        expect(code).to_have_text(key)
        places = [page.evaluate(LEFT_OF, text) for text in ("order", "\u05e9\u05dc\u05d5\u05dd", "17", ")")]
        assert places == sorted(places)


@pytest.mark.long
def test_the_page_tells_a_browser_without_a_free_connection_from_a_blocked_event_loop(
    browser: Browser, host: Host
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install()
        page.goto(host.address)
        expect(page.locator("#state")).to_have_text("Live")
        # As six polls of other tabs do. Of equal addresses the browser's cache would request one at a time.
        page.evaluate("() => { for (let tab = 0; tab < 6; tab++) fetch(`/later?tab=${tab}`); }")
        words = re.compile("^This browser has no free connection to the server")
        try:
            expect(page.locator("#bar")).to_have_text(words, timeout=20_000)
        finally:
            host.on_loop(host.later.set)
        expect(page.locator("#state")).to_have_text("Live", timeout=10_000)


def test_the_page_pauses_and_continues_by_keyboard(open_page: Callable[..., Page], host: Host) -> None:
    page = open_page()
    held: list[Route] = []
    page.route("**/data*", lambda route: held.append(route))
    with page.expect_request("**/data*"):
        host.on_loop(lambda: host.first.try_complete_else_watch(Gate(1000), ["paused"]))
    page.locator("#pause").focus()
    page.keyboard.press("Space")
    expect(page.locator("#state")).to_contain_text("Paused at ")
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
        expect(page.locator("#state")).to_contain_text("No answer since ")
        page.clock.fast_forward(5_000)
        # After five seconds, all parts fade, and a bar names the cause and what to do.
        expect(page.locator("#bar")).to_have_text("No connection. Look whether the process runs.")
        expect(page.locator("body")).to_have_class("stale")
        last = (page.locator("#state").text_content() or "").split()[3]
        expect(page.locator("#rates svg")).to_contain_text(last)
        expect(page.locator("#rates svg")).not_to_contain_text("now")
        context.unroute_all()
        context.route("**/data*", lambda route: route.fulfill(status=403))
        # The page waits for two seconds before each new request.
        page.clock.fast_forward(2_000)
        expect(page.locator("#bar")).to_contain_text("The server answers 403")
        expect(page.locator("#bar")).to_contain_text("Log in, and reload this page.")
        context.unroute_all()
        page.clock.fast_forward(2_000)
        expect(page.locator("#state")).to_have_text("Live")
        expect(page.locator("#bar")).to_have_text(re.compile(r"^Back after \d+ s\.$"))
        expect(page.locator("body")).not_to_have_class("stale")
        expect(page.locator("#rates svg")).to_contain_text("now")
        for _ in range(12):
            with page.expect_response("**/data*"):
                page.clock.run_for(1_000)
        expect(page.locator("#bar")).to_be_hidden()


def test_a_page_in_a_background_tab_asks_twice_a_minute(browser: Browser, host: Host) -> None:
    """So its title and its icon tell."""
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install()
        page.goto(host.address)
        expect(page.locator("#state")).to_have_text("Live")
        hide = "Object.defineProperty(document, 'hidden', {{ configurable: true, value: {} }})"
        page.evaluate(hide.format("true"))
        # The request that was under way, and the one after it.
        with page.expect_response("**/data*"):
            page.clock.run_for(2_000)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if "/data" in request.url else None)
        page.clock.run_for(20_000)
        before = len(asked)
        assert before <= 1
        with page.expect_response("**/data*"):
            page.clock.run_for(31_000)
        page.evaluate(hide.format("false"))
        with page.expect_response("**/data*"):
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


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
            expect(page.locator("#bar")).to_have_text(
                "The event loop may be blocked. Look for code that blocks it, or at the network.",
                timeout=20_000,
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
        expect(page.locator("#bar")).to_contain_text("This page has a fault: ")
        expect(page.locator("#bar")).to_contain_text("Reload it.")
    assert faults


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1440),
        ("dark", 380),
        pytest.param("dark", 1440, marks=pytest.mark.long),
        pytest.param("light", 380, marks=pytest.mark.long),
    ],
)
def test_the_page_fits_the_screen_and_is_accessible(
    open_page: Callable[..., Page], width: int, scheme: str
) -> None:
    page = open_page(width, color_scheme=scheme)
    open_internals(page)
    for button in page.locator("#figures-part a, #figures-part button").all():
        button.focus()
        assert page.evaluate("document.documentElement.scrollWidth") == width
    found = Axe().run(page).response["violations"]
    assert [(fault["id"], fault["impact"], fault["help"]) for fault in found] == []
