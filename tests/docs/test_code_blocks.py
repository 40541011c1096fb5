"""Code fits into a page's column on a screen of 1280 pixels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import browser as browser
from tests.docs.programs import DOCS, PAGES, ROOT, WIDTH

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SITE = ROOT / "build" / "docs"
ON_SITE = [page for page in PAGES if page.is_relative_to(DOCS)]
BLOCK = re.compile(r"^```(.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def code_blocks(page: Path) -> list[str]:
    """The blocks that show code. One with the class "wide" wraps."""
    return [
        text
        for kind, text in BLOCK.findall(page.read_text())
        if kind.startswith("{code-block}") or not kind.startswith("{")
        if not text.startswith(":class: wide\n")
    ]


@pytest.mark.parametrize("page", ON_SITE, ids=lambda page: page.stem)
def test_no_line_of_code_is_longer_than_88_characters(page: Path) -> None:
    lines = [line for block in code_blocks(page) for line in block.splitlines()]
    assert [line for line in lines if len(line) > WIDTH] == []


def test_no_code_is_cut_at_1280_pixels(browser: Browser) -> None:
    cut = "[...document.querySelectorAll('pre')].some(block => block.scrollWidth > block.clientWidth)"
    found = []
    with browser.new_page(viewport={"width": 1280, "height": 900}) as tab:
        for page in ON_SITE:
            tab.goto((SITE / page.relative_to(DOCS)).with_suffix(".html").as_uri())
            found += [page.stem] if tab.evaluate(cut) else []
    assert found == []
