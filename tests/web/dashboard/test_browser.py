"""The page, in a browser."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # has no types
from playwright.sync_api import Browser, Page, expect

from purgatory import Purgatory
from tests.operations import Gate, raising
from tests.web.dashboard.host import Host

pytestmark = pytest.mark.real_time

MARKUP = "<script>window.harmed = 1</script><img src=nothing onerror='window.harmed = 1'>"


class Markup(Gate):
    def __repr__(self) -> str:
        return MARKUP


Markup.__name__ = MARKUP


def some_of_everything(purgatory: Purgatory) -> None:
    """Operations that have ended in each way, and some that wait for longer than these tests take."""
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
def load(host: Host) -> None:
    for purgatory in (host.first, host.second):
        host.on_loop(lambda purgatory=purgatory: some_of_everything(purgatory))  # type: ignore[misc]  # mypy#4226


@pytest.fixture
def look(browser: Browser, host: Host) -> Iterator[Callable[..., Page]]:
    """Opens the page, which has to be without fault, and to ask nobody else for anything."""
    faults: list[str] = []
    contexts = []

    def look(width: int = 1440, **options: str) -> Page:
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
        # A page begins with the last snapshot, which may be from before what the last test did.
        expect(page.locator("#pending")).to_have_text(f"{host.on_loop(host.first.statistics).pending:,}")
        return page

    yield look
    for context in contexts:
        context.close()
    assert faults == []


def figures(page: Page) -> dict[str, int]:
    """What the page shows of what statistics() has."""
    texts: dict[str, str] = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#figures dd')].map(dd => [dd.id, dd.textContent]))"
    )
    return {name: int(text.replace(",", "")) for name, text in texts.items()}


def test_its_figures_are_those_of_statistics_and_follow_them(look: Callable[..., Page], host: Host) -> None:
    page = look()
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


def test_it_shows_the_wheel_by_slot_and_by_level(look: Callable[..., Page], host: Host) -> None:
    page = look()

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


def test_what_is_overdue_is_behind_the_hand_and_the_next_slot_is_that_which_expires(
    browser: Browser, host: Host
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        snapshot = page.request.get(f"{host.address}data").json()
        # 74 ticks are over, and the wheel is still at the 21st.
        snapshot["wheel"] |= {"tick": 0.001, "now": 74.3, "reached": 21, "size": 32, "tasks": 10}
        snapshot["wheel"] |= {"next_slot": 21, "wakeup": None}
        snapshot["wheel"]["levels"] = [[(20, 2), (21, 5), (30, 1)], [(2, 1), (3, 1)]]
        answers = [snapshot]
        # The only one, so that nothing moves but time.
        context.route(
            "**/data*", lambda route: route.fulfill(json=answers.pop()) if answers else route.abort()
        )
        page.goto(host.address)
        slots = page.locator("#wheel path[class*=load]")
        expect(slots.locator("title")).to_have_text(
            [
                "Level 0, slot 20: 2 operations, begun 22.3 ms ago",
                "Level 0, slot 21: 5 operations, begun 53.3 ms ago",
                "Level 0, slot 30: 1 operation, begun 44.3 ms ago",
                "Level 1, slot 2: 1 operation, begun 10.3 ms ago",
                "Level 1, slot 3: 1 operation, from 21.7 ms from now",
            ]
        )
        # Hollow is what has been passed since, and what is overdue is still there.
        expect(slots).to_have_class(["load-1", "load-1 next", "load-1", "load-1", "load-1 passed"])
        expect(page.locator("#wheel text")).to_have_text(["expiring", "now", ""])
        words = re.compile("; what is due is expiring now")
        expect(page.locator("#wheel")).to_have_attribute("aria-label", words)


def watch_a_hand_turn(page: Page) -> None:
    hand = page.locator("#wheel line.hand").nth(1)
    expect(hand).not_to_have_attribute("transform", hand.get_attribute("transform") or "")


# How often the hand is moved in half a second.
MOVES = """async () => {
    let moves = 0;
    const observer = new MutationObserver((changes) => moves += changes.length);
    observer.observe(document.getElementById("wheel"), {attributeFilter: ["transform"], subtree: true});
    await new Promise((resolve) => setTimeout(resolve, 500));
    observer.disconnect();
    return moves;
}"""


def test_its_hands_turn_with_the_time(look: Callable[..., Page]) -> None:
    page = look()
    watch_a_hand_turn(page)
    # Between two snapshots, too.
    assert page.evaluate(MOVES) > 4


def test_who_wants_less_motion_sees_the_hands_move_with_each_snapshot_alone(
    look: Callable[..., Page],
) -> None:
    page = look(reduced_motion="reduce")
    watch_a_hand_turn(page)
    # As many as there are hands, if a snapshot comes meanwhile.
    assert page.evaluate(MOVES) <= 4


def test_markup_in_keys_names_and_errors_is_shown_as_text_and_does_nothing(look: Callable[..., Page]) -> None:
    page = look()
    for part in ("hottest", "oldest", "failures"):
        expect(page.locator(f"#{part} tbody")).to_contain_text("<script>window.harmed")
    assert page.locator("main script, main img").count() == 0
    assert page.evaluate("window.harmed") is None


def test_it_says_why_an_operation_is_still_pending(look: Callable[..., Page]) -> None:
    (row,) = [
        row.locator("td").all_text_contents()
        for row in look().locator("#oldest tr").all()
        if "'key 1'," in row.inner_text()
    ][:1]
    operation, age, tries, due = row
    assert operation == "Gate 'key 1', 'all'"
    assert re.fullmatch(r"[\d.]+ m?s|\d min \d+ s", age)
    assert tries == "2"
    assert re.fullmatch(r"1[56] min \d+ s", due)


def test_each_purgatory_has_its_own_page_which_is_reached_by_keyboard(
    look: Callable[..., Page], host: Host
) -> None:
    page = look()
    expect(page.locator("nav a[aria-current]")).to_contain_text("first")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#name")).to_have_text("<b>second</b>")
    expect(page.locator("nav a[aria-current]")).to_contain_text("second")
    assert page.url == f"{host.address}?purgatory=1"
    assert figures(page) == asdict(host.on_loop(host.second.statistics))


def test_it_pauses_and_goes_on_by_keyboard(look: Callable[..., Page], host: Host) -> None:
    page = look()
    page.locator("#pause").focus()
    page.keyboard.press("Space")
    expect(page.locator("#state")).to_have_text("Paused")
    expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")
    before = figures(page)
    host.on_loop(lambda: host.first.try_complete_else_watch(Gate(1000), ["paused"]))
    # The poll that was under way is answered, and not shown.
    page.wait_for_timeout(1_200)
    assert figures(page) == before
    page.keyboard.press("Space")
    expect(page.locator("#pending")).to_have_text(f"{before['pending'] + 1:,}")
    expect(page.locator("#state")).to_have_text("Live")
    host.on_loop(lambda: host.first.cancel_for_key("paused"))


def test_it_says_when_the_server_is_gone_and_goes_on_when_it_is_back(browser: Browser, host: Host) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(host.address)
        expect(page.locator("#state")).to_have_text("Live")
        context.route("**/data*", lambda route: route.abort())
        expect(page.locator("#state")).to_have_text("No connection; trying again")
        context.unroute_all()
        context.route("**/data*", lambda route: route.fulfill(status=403))
        expect(page.locator("#state")).to_contain_text("The server answers 403", timeout=10_000)
        context.unroute_all()
        expect(page.locator("#state")).to_have_text("Live", timeout=10_000)


def test_it_says_when_the_event_loop_is_blocked_and_goes_on_when_it_is_free(
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
            # Unless it has just asked again, it says so at once.
            expect(page.locator("#state")).to_have_text(
                "No answer for 5 s: the event loop may be blocked; trying again", timeout=20_000
            )
        finally:
            free.set()
        page.clock.fast_forward(2_000)
        expect(page.locator("#state")).to_have_text("Live", timeout=10_000)


def test_a_fault_of_its_own_is_not_taken_for_one_of_the_connection(browser: Browser, host: Host) -> None:
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
def test_it_fits_the_screen_and_everybody_can_use_it(
    look: Callable[..., Page], width: int, scheme: str
) -> None:
    page = look(width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    found = Axe().run(page).response["violations"]
    assert [(fault["id"], fault["impact"], fault["help"]) for fault in found] == []
