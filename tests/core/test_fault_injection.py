"""One fault at each point at which the core can meet one. Promise 14 holds afterwards.

The tests find the points: they repeat a scenario, and the fault strikes one point later each time, until the
scenario gets through. `Scene.check` says what has to hold after each fault.

asyncio loses the wake-up of a task when `call_soon` raises in the middle of `Future.set_result`, as it does
where memory or stack run out. Nobody can repeat it. Such a task is left out, and everything else is checked.
"""

from __future__ import annotations

import gc
import itertools
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from purgatory import COMPILED
from purgatory._core.timer import DEFAULT_WHEEL_SIZE
from tests.core.fault_scenarios import (
    IN_ONE_CALL,
    ON_THE_LOOP,
    Scenario,
    rescheduling_to_a_later_time,
    rescheduling_to_never,
)
from tests.core.fault_scene import Scene
from tests.core.faults import DepthFault, Fault, Injected, MemoryFault, TracedFault, testcapi

ERRORS = (Injected, KeyboardInterrupt, MemoryError, RecursionError)

# At least this many frames are enough for each of the acts.
DEEPEST = 40

all_scenarios = pytest.mark.parametrize(
    "scenario", [*IN_ONE_CALL, *ON_THE_LOOP], ids=lambda each: each.__name__
)
scenarios_in_one_call = pytest.mark.parametrize("scenario", IN_ONE_CALL, ids=lambda each: each.__name__)
each_error = pytest.mark.parametrize(
    ("error", "observed"),
    [
        (Injected, True),
        *(pytest.param(error, True, marks=pytest.mark.slow) for error in ERRORS[1:]),
        # Without observers the core skips some calls, but none that it makes are others.
        *(pytest.param(error, False, marks=pytest.mark.long) for error in ERRORS),
    ],
)


class WithoutTraceback(logging.Formatter):
    def formatException(self, ei: object) -> str:
        return ""


@pytest.fixture(autouse=True)
def _tracebacks_unformatted() -> Iterator[None]:
    """pytest formats the traceback of each failure that is logged. Python 3.13 takes minutes for that."""
    handlers = logging.getLogger().handlers
    formatters = [handler.formatter for handler in handlers]
    for handler in handlers:
        handler.setFormatter(WithoutTraceback())
    yield
    for handler, formatter in zip(handlers, formatters, strict=True):
        handler.setFormatter(formatter)


@pytest.fixture(autouse=True)
def _collector_off(untraced: None) -> Iterator[None]:
    """The collector runs between the tests only. It would allocate memory at points of its own."""
    gc.disable()
    yield
    gc.enable()


def strike(scenario: Scenario, fault: Fault, **options: Any) -> None:
    scene = Scene(fault, **options)
    scene.run(scenario(scene))
    scene.check()


def strike_each_point(scenario: Scenario, make: Callable[[int], Fault], **options: Any) -> int:
    """Strike point after point, until three in a row do not exist. Returns how many do."""
    missed = 0
    for at in itertools.count(1):
        fault = make(at)
        try:
            strike(scenario, fault, **options)
        except BaseException as error:
            error.add_note(f"after the fault at point {at} {fault.where}")
            raise
        missed = 0 if fault.struck else missed + 1
        if missed == 3:
            return at - 3
    raise AssertionError


@all_scenarios
@each_error
def test_user_code_and_the_loop_may_raise_at_each_call(
    scenario: Scenario, error: type[BaseException], observed: bool
) -> None:
    strike_each_point(scenario, lambda at: Fault(error("injected"), at), observed=observed)


@pytest.mark.skipif(COMPILED, reason="calls of compiled code are not traced")
@all_scenarios
@each_error
def test_each_call_that_the_core_makes_may_raise(
    scenario: Scenario, error: type[BaseException], observed: bool
) -> None:
    assert strike_each_point(scenario, lambda at: TracedFault(error("injected"), at), observed=observed)


@pytest.mark.skipif(testcapi is None, reason="this interpreter has no _testcapi")
# In debug mode, asyncio extracts the stack at each call, by generators that nobody closes without memory.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <generator object (walk_stack|StackSummary)")
@scenarios_in_one_call
# In debug mode that memory is hundreds of points for each of the core's.
@pytest.mark.parametrize(
    "observed",
    [
        pytest.param(True, marks=[pytest.mark.long] if sys.flags.dev_mode else []),
        pytest.param(False, marks=pytest.mark.long),
    ],
)
# The bits of so many slots are a large int, which is an object on both builds.
@pytest.mark.parametrize("wheel_size", [DEFAULT_WHEEL_SIZE, pytest.param(128, marks=pytest.mark.slow)])
def test_each_allocation_may_fail(scenario: Scenario, observed: bool, wheel_size: int) -> None:
    points = strike_each_point(scenario, MemoryFault, observed=observed, wheel_size=wheel_size)
    # A new deadline that is later is only noted, which allocates nothing. From Python 3.12 on, taking the
    # deadline away allocates nothing either.
    assert points or scenario in (rescheduling_to_a_later_time, rescheduling_to_never)


@scenarios_in_one_call
@pytest.mark.parametrize("observed", [True, pytest.param(False, marks=pytest.mark.long)])
def test_there_may_be_room_for_a_few_frames_only(scenario: Scenario, observed: bool) -> None:
    for room in range(1, DEEPEST):
        try:
            strike(scenario, DepthFault(room), observed=observed)
        except BaseException as error:
            error.add_note(f"with room for {room} frames")
            raise
