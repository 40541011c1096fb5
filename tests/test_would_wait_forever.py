"""A virtual-time loop fails at once when its tasks would wait forever."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio
import pytest

from purgatory import Purgatory, PurgatoryError
from purgatory.testing import VirtualTimeLoop, WouldWaitForever
from tests.operations import Gate

T = TypeVar("T")


def on_virtual_time(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main` on a loop of its own, and return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


async def never() -> None:
    await asyncio.Event().wait()


def test_without_timers_the_error_names_the_tasks_and_where_they_wait() -> None:
    async def main() -> None:
        others = [asyncio.create_task(never(), name=name) for name in ("second", "first")]
        await asyncio.sleep(10.0)
        await others[0]

    with pytest.raises(WouldWaitForever) as caught:
        on_virtual_time(main)
    first_line, *lines = str(caught.value).splitlines()
    assert first_line == ("nothing is left to run and no timer is armed; these tasks would wait forever:")
    # The tasks are sorted by name.
    assert [line.split(":")[0].strip() for line in lines][1:] == ["first", "second"]
    assert len(lines) == 3
    place = f"{__file__}:{never.__code__.co_firstlineno + 1} in never"
    assert lines[1] == f"  first: {place}"
    assert lines[2] == f"  second: {place}"


def test_a_loop_that_would_wait_forever_can_be_closed() -> None:
    cleaned_up = []

    async def main() -> None:
        try:
            await never()
        finally:
            await asyncio.sleep(1.0)
            cleaned_up.append(asyncio.get_running_loop().time())

    with pytest.raises(PurgatoryError):
        on_virtual_time(main)
    # Closing the runner cancels the task, and time passes for what it does then.
    assert cleaned_up == [1.0]


def test_awaiting_an_operation_that_never_ends_fails_at_once() -> None:
    async def main() -> None:
        async with Purgatory() as purgatory:
            await purgatory.try_complete_else_watch(Gate(None), ["key"])

    with pytest.raises(WouldWaitForever, match=r"test_would_wait_forever\.py:\d+ in main"):
        on_virtual_time(main)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "sleep",
    [
        pytest.param(anyio.sleep_forever, id="anyio.sleep_forever"),
        pytest.param(lambda: asyncio.sleep(math.inf), id="asyncio.sleep(inf)"),
        pytest.param(lambda: asyncio.wait_for(never(), math.inf), id="asyncio.wait_for(…, inf)"),
    ],
)
def test_a_timer_at_infinity_does_not_count_as_a_timer(
    sleep: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    with pytest.raises(WouldWaitForever):
        on_virtual_time(sleep)
