"""What all tests share: both event loops, virtual time, and no error that goes unnoticed."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest
import pytest_asyncio
from hypothesis import settings

from purgatory import Purgatory

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

LOOPS: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
try:
    import uvloop
except ImportError:
    pass
else:
    LOOPS["uvloop"] = uvloop.new_event_loop

pytest_plugins = ["purgatory.pytest_plugin", "pytester", "tests.browser"]

# How long an example takes says more about the machine than about the code.
settings.register_profile("purgatory", deadline=None)
settings.load_profile("purgatory")


def pytest_asyncio_loop_factories() -> dict[str, LoopFactory]:
    """Every async test runs once on each loop; one that asks for `virtual_time` runs on that alone."""
    return LOOPS


@pytest.fixture(params=LOOPS)
def loop_factory(request: pytest.FixtureRequest) -> LoopFactory:
    """Each loop in turn, for tests that end a loop themselves."""
    return LOOPS[cast(str, request.param)]


@pytest_asyncio.fixture
async def purgatory() -> AsyncIterator[Purgatory]:
    """An open purgatory. pytest-asyncio opens and closes it in two different tasks."""
    async with Purgatory() as opened:
        yield opened


@pytest_asyncio.fixture
async def reported() -> list[dict[str, Any]]:
    """What the loop's exception handler is told from here on. (Without it, that fails the test.)"""
    contexts: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.append(context))
    return contexts


@pytest.fixture
def collector_off() -> Iterator[None]:
    """Whatever is freed in this test is freed by its reference count."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def untraced() -> Iterator[None]:
    """For what runs the same lines very often: tracing them takes three times as long, and tells nothing."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)


@pytest.fixture(autouse=True)
def _nothing_goes_unnoticed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails a test in which a loop logged an error: of a hook that failed, of a task nobody looked at."""
    yield
    logged = [*caplog.get_records("call"), *caplog.get_records("teardown")]
    errors = [r.getMessage() for r in logged if r.name == "asyncio" and r.levelno >= logging.ERROR]
    assert not errors
