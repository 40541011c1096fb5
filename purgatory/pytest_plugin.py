"""Virtual time for pytest-asyncio: ``pytest_plugins = ["purgatory.pytest_plugin"]`` in your conftest.py.

A test (or one of its fixtures) that asks for `virtual_time` runs, with all its async fixtures, on a
`purgatory.testing.VirtualTimeLoop`; the others run on the loop that they would have had.
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
    """The virtual-time loop that the test runs on; `time()` tells its seconds."""
    loop = asyncio.get_running_loop()
    marker = request.node.get_closest_marker("asyncio")
    scope = marker and marker.kwargs.get("loop_scope")
    shared = (scope or request.config.getini("asyncio_default_test_loop_scope")) != "function"
    if shared or not isinstance(loop, VirtualTimeLoop):
        pytest.fail(
            "virtual_time needs a loop of the test's own: make the test async, and loop_scope 'function'"
        )
    return loop


@pytest.hookimpl(wrapper=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Generator[None, LoopFactories | None, LoopFactories]:
    factories = yield
    if "virtual_time" in getattr(item, "fixturenames", ()):
        return {"virtual": VirtualTimeLoop}
    # Without a mapping from somebody, pytest-asyncio would refuse; this is what it does without the hook.
    return factories or {"default": asyncio.new_event_loop}
