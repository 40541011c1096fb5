"""A real browser for the tests of web pages. Every test that uses it is marked as slow."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    # Playwright is imported when a test needs it, so that the other tests run without it.
    from playwright.sync_api import Browser

CHROMIUM: Final = shutil.which("chromium")
# They turn off requests to the browser's maker, and features that a container does not have.
ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the browser, before pytest selects tests by their marks."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def browser_and_loop() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """One browser for each worker, and the suspended event loop of Playwright that drives it.

    Without a browser, the tests that need it are skipped; in CI they fail.
    """
    if CHROMIUM is None:
        if "CI" in os.environ:
            pytest.fail("CI has to have a browser: apt-get install chromium")
        pytest.skip("there is no browser here: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture(scope="module")
def browser(browser_and_loop: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """The worker's browser.

    Playwright's loop counts as running for as long as Playwright does, which would keep asyncio from running
    any other loop in this thread. So it counts as running only for the modules that use the browser.
    """
    browser, loop = browser_and_loop
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)
