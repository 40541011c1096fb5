"""Virtual time for pytest-asyncio: ``pytest_plugins = ["purgatory.pytest_plugin"]`` in your conftest.py.

A test runs on a `purgatory.testing.VirtualTimeLoop`, with all its async fixtures, when it or one of its
fixtures requests `virtual_time`. All other tests keep their loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping

import pytest
import pytest_asyncio

from purgatory.testing import VirtualTimeLoop

LoopFactories = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]


@pytest_asyncio.fixture
async def virtual_time(request: pytest.FixtureRequest) -> VirtualTimeLoop:
    """The virtual-time loop that the test runs on; its `time()` is in virtual seconds."""
    loop = asyncio.get_running_loop()
    marker = request.node.get_closest_marker("asyncio")
    scope = marker and marker.kwargs.get("loop_scope")
    shared = (scope or request.config.getini("asyncio_default_test_loop_scope")) != "function"
    if shared or not isinstance(loop, VirtualTimeLoop):
        pytest.fail(
            "virtual_time needs a loop that serves one test: make the test async, with loop_scope 'function'"
        )
    return loop


@pytest.hookimpl(wrapper=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Generator[None, LoopFactories | None, LoopFactories]:
    factories = yield
    if "virtual_time" in getattr(item, "fixturenames", ()):
        return {"virtual": VirtualTimeLoop}
    # Where no plugin gives a mapping, pytest-asyncio refuses None. This is its behaviour without the hook.
    return factories or {"default": asyncio.new_event_loop}
