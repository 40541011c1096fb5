"""A virtual-time loop fails at once when its tasks would wait forever."""

from __future__ import annotations

import asyncio
import math
import re
import types
from collections.abc import Callable, Coroutine, Generator
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


async def wait_inside(purgatory: Purgatory) -> None:
    await purgatory.wait_until(lambda: False, ["key"])


@types.coroutine
def by_generator(awaited: Coroutine[Any, Any, None]) -> Generator[Any, None, None]:
    yield from awaited


@pytest.mark.parametrize(
    "awaiting",
    [
        wait_inside,
        lambda purgatory: by_generator(wait_inside(purgatory)),
        lambda purgatory: asyncio.wait_for(wait_inside(purgatory), None),
    ],
)
def test_the_error_names_the_innermost_line_that_is_no_librarys(
    awaiting: Callable[[Purgatory], Coroutine[Any, Any, None]],
) -> None:
    async def main() -> None:
        async with Purgatory() as purgatory:
            await awaiting(purgatory)

    with pytest.raises(WouldWaitForever) as caught:
        on_virtual_time(main)
    line = wait_inside.__code__.co_firstlineno + 1
    assert re.search(rf"{re.escape(__file__)}:{line} in wait_inside$", str(caught.value), re.MULTILINE)


def described(main: Callable[[], Coroutine[Any, Any, None]]) -> list[str]:
    """The lines of the error, without its first one."""
    with pytest.raises(WouldWaitForever) as caught:
        on_virtual_time(main)
    return str(caught.value).splitlines()[1:]


def test_the_error_names_what_a_task_awaits_and_what_is_pending() -> None:
    async def main() -> None:
        async with Purgatory("p") as purgatory:
            purgatory.try_complete_else_watch(Gate(None), ["b"])
            purgatory.check_and_complete("b")
            await purgatory.try_complete_else_watch(Gate(None), ["a"])

    lines = described(main)
    assert not any("reaper" in line for line in lines)
    assert lines[1:] == [
        "    awaits <Gate pending timeout=None keys=['a'] tried once>",
        "2 operations are pending in purgatory 'p':",
        "  <Gate pending timeout=None keys=['b'] tried 2 times>",
        "  <Gate pending timeout=None keys=['a'] tried once>",
    ]


def test_one_pending_operation_is_told_in_the_singular() -> None:
    async def main() -> None:
        async with Purgatory("p") as purgatory:
            await purgatory.try_complete_else_watch(Gate(None), ["a"])

    assert "1 operation is pending in purgatory 'p':" in described(main)


def test_a_task_of_wait_until_itself_is_named_by_the_line_of_its_predicate() -> None:
    async def main() -> None:
        async with Purgatory("p") as purgatory:
            waiting: asyncio.Task[bool] = asyncio.create_task(
                purgatory.wait_until(lambda: False, ["key"]),
                name="waiting",
            )
            await asyncio.wait([waiting])

    lines = described(main)
    line = main.__code__.co_firstlineno + 3
    assert f"  waiting: {__file__}:{line} in <lambda>" in lines


def test_the_error_lists_no_more_than_ten_pending_operations() -> None:
    async def main() -> None:
        async with Purgatory("p") as purgatory:
            for key in range(30):
                purgatory.try_complete_else_watch(Gate(None), [key])
            await never()

    lines = described(main)
    assert "30 operations are pending in purgatory 'p':" in lines
    assert len([line for line in lines if "<Gate" in line]) == 10


def test_a_task_in_which_only_a_library_waits_is_named_by_its_outermost_line() -> None:
    async def main() -> None:
        await asyncio.create_task(asyncio.Event().wait(), name="event")

    with pytest.raises(WouldWaitForever, match=r"  event: .*locks\.py:\d+ in wait"):
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
