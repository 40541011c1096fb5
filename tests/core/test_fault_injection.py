"""One fault at each call at which the core meets user code or the loop. Promise 14 holds afterwards.

The tests find the calls: they repeat a scenario, and the fault strikes one call later each time, until the
scenario gets through. `Scene.check` says what has to hold after each fault.

asyncio loses the wake-up of a task when `call_soon` raises in the middle of `Future.set_result`. Nobody can
repeat it. Such a task is left out, and everything else is checked.
"""

from __future__ import annotations

import itertools

import pytest

from tests.core.fault_scenarios import IN_ONE_CALL, ON_THE_LOOP, Scenario
from tests.core.fault_scene import Scene
from tests.core.faults import Fault, Injected


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("scenario", [*IN_ONE_CALL, *ON_THE_LOOP], ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    ("observed", "debug"), [(False, False), (True, False), pytest.param(True, True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("error", [Injected, KeyboardInterrupt, MemoryError, RecursionError])
def test_user_code_and_the_loop_may_raise_at_each_call(
    scenario: Scenario, error: type[BaseException], observed: bool, debug: bool
) -> None:
    for at in itertools.count(1):
        fault = Fault(error("injected"), at)
        try:
            scene = Scene(fault, observed=observed, debug=debug)
            scene.run(scenario(scene))
            scene.check()
        except BaseException as raised:
            raised.add_note(f"after the fault at call {at}")
            raise
        if not fault.struck:
            break
