"""What all tests share: the event loops, virtual time, Hypothesis profiles, and a check of what loops log."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest
import pytest_asyncio
from hypothesis import settings

from purgatory import COMPILED, Purgatory
from purgatory import __file__ as package
from purgatory.testing import ManualClock

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

LOOPS: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
try:
    import uvloop
except ImportError:
    pass
else:
    LOOPS["uvloop"] = uvloop.new_event_loop
if sys.version_info >= (3, 12):

    def eager(make: LoopFactory) -> LoopFactory:
        """Make loops whose tasks run up to their first suspension while they are created."""

        def make_eager() -> asyncio.AbstractEventLoop:
            loop = make()
            loop.set_task_factory(asyncio.eager_task_factory)
            return loop

        return make_eager

    # In early versions of 3.13, uvloop hands this factory more than it takes. anyio knows no other.
    kinds = [each.kind for each in inspect.signature(asyncio.eager_task_factory).parameters.values()]
    takes_all = sys.version_info < (3, 13) or inspect.Parameter.VAR_KEYWORD in kinds
    LOOPS |= {f"{name}, eager": eager(make) for name, make in LOOPS.items() if takes_all or name != "uvloop"}

pytest_plugins = ["purgatory.pytest_plugin", "pytester", "tests.browser"]

# `make test`, `make check` and `make test-long` choose a profile. A test that needs more examples than others
# multiplies `settings().max_examples`. The time of one example depends on the machine: no deadline.
settings.register_profile("fast", deadline=None, max_examples=25)
settings.register_profile("check", deadline=None, max_examples=60)
settings.register_profile("long", deadline=None, max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


# A shell has what it starts in the background ignore this signal, and so would every process of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    """Which build is under test, and from where."""
    return f"purgatory: {'compiled' if COMPILED else 'interpreted'} core, from {os.path.dirname(package)}"


def work_unit(test: str) -> str:
    """What one worker runs: the tests of a file, or those of the pipeline, which share a Spark session."""
    file = test.partition("::")[0]
    return "tests/pipeline" if file.startswith("tests/pipeline/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Divide the tests among the workers by `work_unit`."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # has no types

    class WorkUnits(LoadScopeScheduling):  # type: ignore[misc]  # has no types
        def _split_scope(self, nodeid: str) -> str:
            return work_unit(nodeid)

    return WorkUnits(config, log)


# When it is known which tests run.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side, what has the most slow tests comes first, and files whose tests have a time limit of
    their own. A worker that begins one late ends after the others.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        limited = {work_unit(item.nodeid) for item in items if item.get_closest_marker("timeout")}
        slow = Counter(work_unit(item.nodeid) for item in items if item.get_closest_marker("slow"))
        tests = Counter(work_unit(item.nodeid) for item in items)

        def place(item: pytest.Item) -> tuple[bool, int, int, str]:
            unit = work_unit(item.nodeid)
            return unit not in limited, -slow[unit], -tests[unit], unit

        items.sort(key=place)


@pytest.fixture(scope="module")
def little_to_collect() -> None:
    """The garbage collector looks at nothing that was there before the tests of this module."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish() -> None:
    """Many tests run the garbage collector. Most of its time would go into all that the tests import."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Some extensions report what is still alive when the interpreter ends."""
    gc.unfreeze()


def pytest_asyncio_loop_factories() -> dict[str, LoopFactory]:
    """Every async test runs on each loop. A test that asks for `virtual_time` runs on that loop alone."""
    return LOOPS


@pytest.fixture(params=LOOPS)
def loop_factory(request: pytest.FixtureRequest) -> LoopFactory:
    """Makes each kind of loop in turn, for tests that close their loop themselves."""
    return LOOPS[cast(str, request.param)]


@pytest.fixture(params=["lazy tasks", "eager tasks"])
def tasks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the tasks of the test's loops begin. An eager task may end before `create_task` returns."""
    if request.param == "lazy tasks":
        return
    if sys.version_info < (3, 12):
        pytest.skip("there are no eager tasks before Python 3.12")

    def make_eager(loop: asyncio.BaseEventLoop) -> None:
        make_lazy(loop)
        loop.set_task_factory(asyncio.eager_task_factory)

    make_lazy = asyncio.BaseEventLoop.__init__
    monkeypatch.setattr(asyncio.BaseEventLoop, "__init__", make_eager)


@pytest_asyncio.fixture
async def purgatory() -> AsyncIterator[Purgatory]:
    """An open purgatory. pytest-asyncio opens and closes it in two different tasks."""
    async with Purgatory() as opened:
        yield opened


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def held(clock: ManualClock) -> Purgatory:
    """A purgatory on a clock that the test moves."""
    return clock.purgatory()


@pytest_asyncio.fixture
async def reported() -> list[dict[str, Any]]:
    """The contexts that the loop's exception handler gets. Without this fixture they fail the test."""
    contexts: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.append(context))
    return contexts


@pytest.fixture
def collector_off() -> Iterator[None]:
    """Turns the garbage collector off: what is freed in the test is freed by its reference count."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def untraced() -> Iterator[None]:
    """Turns coverage's tracer off, for tests that run the same lines very often: it triples their time."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)


@pytest.fixture(autouse=True)
def _no_error_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails a test in which a loop logs an error, such as an exception that no task retrieves."""
    yield
    logged = [*caplog.get_records("call"), *caplog.get_records("teardown")]
    errors = [r.getMessage() for r in logged if r.name == "asyncio" and r.levelno >= logging.ERROR]
    assert not errors
