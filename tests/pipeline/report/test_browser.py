"""The page in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import vl_convert
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # has no types
from playwright.sync_api import Browser, Dialog, Page, Route, expect

from purgatory._figures.outcomes import OUTCOME_COLOURS
from purgatory.pipeline.report.chart import COLOURS
from purgatory.pipeline.report.page import page
from tests.browser import browser as browser
from tests.pipeline.report.sample_findings import HOSTILE, everything, findings, minute, summary

DRAWN: Final = {*COLOURS, *OUTCOME_COLOURS.values()}

# The colours of each chart's pixels. Reads a copy, because the browser warns of reading a visible canvas.
_COLOURS: Final = """
() => Object.fromEntries([...document.querySelectorAll(".chart")].map((chart) => {
  const canvas = chart.querySelector("canvas");
  const copy = document.createElement("canvas");
  Object.assign(copy, { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, copy.width, copy.height).data;
  const hex = (at) => pixels[at].toString(16).padStart(2, "0");
  const colours = new Set();
  for (let at = 0; at < pixels.length; at += 4)
    if (pixels[at + 3] === 255) colours.add(`#${hex(at)}${hex(at + 1)}${hex(at + 2)}`);
  return [chart.id, [...colours]];
}))
"""


@dataclass
class Shown:
    """A page, with its messages and requests since it was opened."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path) -> None:
        def listen(route: Route) -> None:
            if route.request.url == path.as_uri():
                route.continue_()
            else:
                self.requests.append(route.request.url)
                route.abort()

        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.route("**/*", listen)
        self.page.goto(path.as_uri())
        self.drawn("light")

    def _dismiss(self, dialog: Dialog) -> None:
        self.messages.append(dialog.message)
        dialog.dismiss()

    def drawn(self, scheme: str) -> None:
        # Waiting for a function would need eval, which the page's policy forbids.
        self.page.wait_for_selector(f'html[data-charts="{scheme}"]', state="attached")

    def colours(self) -> dict[str, set[str]]:
        """The colours of each chart's pixels."""
        return {name: set(colours) for name, colours in self.page.evaluate(_COLOURS).items()}

    def width(self) -> Any:
        return self.page.evaluate("document.documentElement.scrollWidth")


@pytest.fixture(scope="module", autouse=True)
def libraries() -> Iterator[None]:
    """Bundle the libraries once: it takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "javascript_bundle", cache(vl_convert.javascript_bundle))
        yield


@pytest.fixture(scope="module")
def html() -> str:
    return page(everything(), ["kinds"])


@pytest.fixture(scope="module")
def shown(browser: Browser, html: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """The report, on a wide screen."""
    path = tmp_path_factory.mktemp("report") / "index.html"
    path.write_text(html, encoding="utf-8")
    with browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light") as tab:
        shown = Shown(tab)
        shown.open(path)
        yield shown


def test_every_chart_is_drawn(shown: Shown) -> None:
    charts = shown.colours()

    assert len(charts) == 14
    # Axes and labels have other colours than legend_entries.
    assert [name for name, colours in charts.items() if not colours & DRAWN] == []
    # Two kinds have a curve: the first and the third of three.
    assert charts["survival"] & set(COLOURS) == {COLOURS[0], COLOURS[2]}


def test_a_screen_reader_reads_what_each_chart_shows(shown: Shown) -> None:
    charts = shown.page.locator(".chart")
    names = [chart.get_attribute("aria-label") or "" for chart in charts.all()]

    assert len(names) == 14
    assert all(": " in name for name in names)
    found = Axe().run(shown.page).response["violations"]
    assert [(fault["id"], fault["impact"], fault["help"]) for fault in found] == []


def test_the_tables_are_there(shown: Shown) -> None:
    captions = shown.page.locator("caption").all_inner_texts()

    assert any(caption.startswith("The kinds of operations") for caption in captions)
    assert "Rows of the journal" in captions
    assert shown.page.locator("tbody th", has_text=HOSTILE).count() > 0


def test_pointing_at_a_chart_shows_a_tooltip(shown: Shown) -> None:
    shown.page.locator("#keys-operations canvas").hover(position={"x": 600, "y": 15})
    tooltip = shown.page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()

    assert HOSTILE in tooltip.inner_text()


# Where a chart has pixels of the colours of its series: some places, from all over the chart.
_PLACES: Final = """
([name, wanted]) => {
  const canvas = document.querySelector(`#${name} canvas`);
  const copy = document.createElement("canvas");
  Object.assign(copy, { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, copy.width, copy.height).data;
  const hex = (at) => pixels[at].toString(16).padStart(2, "0");
  const places = [];
  for (let at = 0; at < pixels.length; at += 4) {
    if (wanted.includes(`#${hex(at)}${hex(at + 1)}${hex(at + 2)}`)) {
      places.push([(at / 4) % copy.width, Math.floor(at / 4 / copy.width)]);
    }
  }
  return places.filter((_, index) => index % Math.ceil(places.length / 16) === 0);
}
"""


def tooltips(page: Page, chart: str) -> list[str]:
    """The tooltips of a chart, where it has the colours of a series."""
    canvas = page.locator(f"#{chart} canvas")
    found = []
    for x, y in page.evaluate(_PLACES, [chart, list(DRAWN)]):
        canvas.hover(position={"x": x, "y": y})
        tooltip = page.locator("#vg-tooltip-element.visible")
        if tooltip.count():
            found.append(tooltip.inner_text())
    return found


def test_the_tooltips_of_all_charts_have_their_values(shown: Shown) -> None:
    by_chart = {chart: tooltips(shown.page, chart) for chart in shown.colours()}

    assert [chart for chart, texts in by_chart.items() if not texts] == []
    assert [text for texts in by_chart.values() for text in texts if "undefined" in text] == []


def test_on_a_narrow_screen_only_tables_scroll(shown: Shown) -> None:
    wide = shown.width()
    shown.page.set_viewport_size({"width": 380, "height": 800})
    # The whole width except a margin of 16 on each side.
    expect(shown.page.locator("#pending canvas")).to_have_css("width", "348px")

    assert (wide, shown.width()) == (1440, 380)
    shown.page.set_viewport_size({"width": 1440, "height": 900})


def test_the_charts_follow_the_colour_scheme_of_the_page(shown: Shown) -> None:
    light = shown.colours()["survival"]
    shown.page.emulate_media(color_scheme="dark")
    shown.drawn("dark")
    dark = shown.colours()["survival"]
    shown.page.emulate_media(color_scheme="light")
    shown.drawn("light")

    assert light - dark
    assert COLOURS[0] in light & dark


def test_the_page_requests_nothing_and_logs_nothing(shown: Shown) -> None:
    assert (shown.requests, shown.messages) == ([], [])


def test_a_page_with_one_minute_and_missing_tables_is_drawn(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(page(findings(**summary(minute(0)))), encoding="utf-8")
    with browser.new_page(color_scheme="light") as tab:
        shown = Shown(tab)
        shown.open(path)

        assert all(colours & DRAWN for colours in shown.colours().values())
        assert "purgatory-pipeline advise" in tab.inner_text("#waits")
        assert (shown.requests, shown.messages) == ([], [])


def test_without_scripts_the_tables_can_be_read(browser: Browser, html: str) -> None:
    with browser.new_page(java_script_enabled=False) as tab:
        tab.set_content(html)

        assert "The charts need JavaScript" in tab.inner_text("noscript")
        assert "Fetch in fetch" in tab.inner_text("#overview table")
