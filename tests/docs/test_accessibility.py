"""The built site can be used with a keyboard and a screen reader. `make test-docs` builds it before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import browser as browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# `make test-docs` alone does not install it.
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
SITE = Path(__file__).parents[2] / "build" / "docs"


@pytest.mark.parametrize("page", ["index", "tutorial", "how-to/long-poll", "deployment"])
@pytest.mark.parametrize("width", [1280, 400])
def test_axe_finds_no_fault_in_a_page_of_the_site(browser: Browser, page: str, width: int) -> None:
    with browser.new_page(viewport={"width": width, "height": 900}) as tab:
        tab.goto((SITE / f"{page}.html").as_uri())
        found = axe.Axe().run(tab).response["violations"]
    assert [(fault["id"], fault["impact"], fault["nodes"][0]["html"]) for fault in found] == []
