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
async def virtual_time() -> VirtualTimeLoop:
    """The virtual-time loop that the test runs on; `time()` tells its seconds."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualTimeLoop):
        pytest.fail("virtual_time needs a loop of the test's own: drop loop_scope, or make it 'function'")
    return loop


@pytest.hookimpl(wrapper=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Generator[None, LoopFactories | None, LoopFactories]:
    factories = yield
    if "virtual_time" in getattr(item, "fixturenames", ()):
        return {"virtual": VirtualTimeLoop}
    # Without a mapping from somebody, pytest-asyncio would refuse; this is what it does without the hook.
    return factories or {"default": asyncio.new_event_loop}
