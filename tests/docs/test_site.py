"""What a reader of the built site finds on each page. `make test-docs` builds it before."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import browser as browser
from tests.docs.programs import DOCS, PAGES, ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SITE = ROOT / "build" / "docs"
ON_SITE = [page for page in PAGES if page.is_relative_to(DOCS)]
NOTE = "Not on PyPI yet."


def built(page: Path) -> str:
    return (SITE / page.relative_to(DOCS)).with_suffix(".html").read_text()


def test_the_sidebar_has_at_most_twenty_entries_with_other_pages_below_them() -> None:
    sidebar = built(DOCS / "index.md").partition('<div class="sidebar-tree">')[2].partition("</aside>")[0]
    assert sidebar.count('class="toctree-l1') <= 20
    assert "how-to/leases.html" in sidebar
    assert "pipeline-scale.html" in sidebar


@pytest.mark.parametrize("page", ON_SITE, ids=lambda page: page.stem)
def test_a_page_has_an_icon_and_describes_itself_to_search_engines(page: Path) -> None:
    text = built(page)
    assert '<link rel="shortcut icon" href="' in text
    assert re.search(r'<meta name="description" content="[^"]{20,}"', text)


@pytest.mark.parametrize("page", ON_SITE, ids=lambda page: page.stem)
def test_a_page_that_installs_the_library_says_once_what_works_before_the_release(page: Path) -> None:
    source = page.read_text()
    installs = re.search(r"pip install[^\n]* '?asyncio-purgatory", source)
    unreleased = NOTE in (DOCS / "installation.md").read_text()
    assert built(page).count(NOTE) == (1 if installs and unreleased else 0)
    assert not re.search(r"pip install.*asyncio-purgatory.*checkout", source)


def test_a_site_without_a_repository_links_to_none() -> None:
    assert "Repository</a>" not in built(DOCS / "index.md")


def test_the_table_of_urls_gives_the_repository_and_a_link_to_edit_each_page(tmp_path: Path) -> None:
    project = (ROOT / "pyproject.toml").read_text().partition("[project.urls]")[0]
    urls = '[project.urls]\nRepository = "https://github.com/example/purgatory"\n'
    (tmp_path / "pyproject.toml").write_text(f"{project}\n{urls}")
    (tmp_path / "build").mkdir()
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ["conf.py", "installation.md"]:
        shutil.copy(DOCS / name, docs)
    for name in ["_static", "_templates"]:
        shutil.copytree(DOCS / name, docs / name)
    (docs / "index.md").write_text("# Title\n\nText.\n")
    (docs / "changelog.md").write_text("# Changelog\n")

    sphinx = [sys.executable, "-m", "sphinx", "--quiet", "-D", "html_favicon=", "-b", "html"]
    subprocess.run([*sphinx, str(docs), str(tmp_path / "site")], cwd=ROOT, capture_output=True, check=True)
    page = (tmp_path / "site" / "index.html").read_text()
    assert '<a href="https://github.com/example/purgatory">Repository</a>' in page
    assert "https://github.com/example/purgatory/edit/main/docs/index.md" in page


@pytest.mark.parametrize("width", [1200, 1280])
def test_a_page_shows_its_own_contents_beside_the_text(browser: Browser, width: int) -> None:
    with browser.new_page(viewport={"width": width, "height": 900}) as tab:
        tab.goto((SITE / "deployment.html").as_uri())
        contents = tab.locator(".toc-drawer").bounding_box()
        text = tab.locator("article").bounding_box()
    assert contents is not None
    assert text is not None
    assert text["x"] + text["width"] <= contents["x"]
    assert contents["x"] + contents["width"] <= width


def test_a_search_for_sse_finds_the_page_on_server_sent_events_first(browser: Browser) -> None:
    with browser.new_page() as tab:
        tab.goto((SITE / "search.html").as_uri() + "?q=sse")
        first = tab.locator("#search-results li a").first
        assert first.get_attribute("href") == "how-to/server-sent-events.html"
