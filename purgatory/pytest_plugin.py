"""Virtual time for pytest-asyncio: ``pytest_plugins = ["purgatory.pytest_plugin"]`` in your conftest.py.

A test runs on a `purgatory.testing.VirtualTimeLoop`, with all its async fixtures, when it or one of its
fixtures requests `virtual_time`. All other tests keep their loops.

The extra ``testing`` installs what the plugin needs.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping

import pytest

from purgatory.testing import VirtualTimeLoop

NEEDED = (
    "purgatory.pytest_plugin needs pytest-asyncio 1.4 or newer, and not disabled: "
    "pip install 'asyncio-purgatory[testing]'"
)

try:
    import pytest_asyncio
except ImportError as error:
    raise pytest.UsageError(NEEDED) from error

LoopFactories = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to go on where no pytest-asyncio calls the hook below."""
    if not config.pluginmanager.hook.pytest_asyncio_loop_factories.has_spec():
        raise pytest.UsageError(NEEDED)


@pytest_asyncio.fixture
async def virtual_time(request: pytest.FixtureRequest) -> VirtualTimeLoop:
    """The virtual-time loop that the test runs on; its `time()` is in virtual seconds."""
    loop = asyncio.get_running_loop()
    marker = request.node.get_closest_marker("asyncio")
    if marker is None and inspect.iscoroutinefunction(request.node.obj):
        # Only in auto mode does pytest-asyncio mark it, so no plugin has run it on a loop with virtual time.
        pytest.fail(
            "virtual_time needs a test that pytest-asyncio runs: mark it with @pytest.mark.asyncio, "
            "or set asyncio_mode = auto in the configuration of pytest"
        )
    scope = marker and marker.kwargs.get("loop_scope")
    shared = (scope or request.config.getini("asyncio_default_test_loop_scope")) != "function"
    if shared or not isinstance(loop, VirtualTimeLoop):
        pytest.fail(
            "virtual_time needs a loop that serves one test: make the test async, with loop_scope 'function'"
        )
    return loop


# pytest itself does not know this hook, which is pytest-asyncio's. `pytest_configure` says what is missing.
@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Generator[None, LoopFactories | None, LoopFactories]:
    factories = yield
    if "virtual_time" in getattr(item, "fixturenames", ()):
        return {"virtual": VirtualTimeLoop}
    # Where no plugin gives a mapping, pytest-asyncio refuses None. This is its behaviour without the hook.
    return factories or {"default": asyncio.new_event_loop}
