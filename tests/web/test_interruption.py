"""A wait ends with its operation, by a cancellation that nobody else ever sees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from purgatory import Purgatory
from purgatory.testing import VirtualTimeLoop
from purgatory.web.interruption import Interruption
from tests.operations import Gate, Stop, a_few_turns, raising


def this_task() -> asyncio.Task[Any]:
    return cast("asyncio.Task[Any]", asyncio.current_task())


async def untouched() -> bool:
    """Whether no cancellation of this task is left over, neither counted nor on its way."""
    await a_few_turns()
    return not this_task().cancelling()


@pytest.fixture
def gate(purgatory: Purgatory) -> Gate:
    return purgatory.try_complete_else_watch(Gate(name="answer"), ["key"])


async def test_it_ends_what_is_awaited_without_a_task_of_its_own(gate: Gate) -> None:
    tasks = asyncio.all_tasks()
    asyncio.get_running_loop().call_soon(gate.force_complete)
    with Interruption(gate):
        assert asyncio.all_tasks() == tasks
        await asyncio.Event().wait()
        raise AssertionError("the wait went on")
    assert gate.result() == "answer"
    assert await untouched()


async def test_what_is_awaited_may_clear_up_first(gate: Gate) -> None:
    cleared: list[str] = []

    async def reluctant() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await a_few_turns()
            cleared.append("up")

    asyncio.get_running_loop().call_soon(gate.force_complete)
    with Interruption(gate):
        await reluctant()
    assert cleared == ["up"]
    assert await untouched()


async def test_a_block_left_before_the_end_of_the_operation_is_left_alone(gate: Gate) -> None:
    with Interruption(gate):
        await asyncio.sleep(0)
    gate.force_complete()
    assert await untouched()


async def test_a_block_left_in_the_turn_of_the_operations_end_is_left_alone(gate: Gate) -> None:
    with Interruption(gate):
        gate.force_complete()
    assert await untouched()


async def test_an_operation_that_ends_while_the_task_itself_runs_ends_its_next_wait(gate: Gate) -> None:
    with Interruption(gate):
        gate.force_complete()
        await asyncio.Event().wait()
        raise AssertionError("the wait went on")
    assert await untouched()


async def test_what_swallows_the_cancellation_may_go_on(gate: Gate) -> None:
    asyncio.get_running_loop().call_soon(gate.force_complete)
    with Interruption(gate):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            went_on = await asyncio.sleep(0, "went on")
    assert went_on == "went on"
    assert await untouched()


async def test_what_the_cancelled_wait_raises_instead_goes_up(gate: Gate) -> None:
    async def wait() -> None:
        with Interruption(gate):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ConnectionError from None

    asyncio.get_running_loop().call_soon(gate.force_complete)
    with pytest.raises(ConnectionError):
        await wait()
    assert await untouched()


async def cancelled_in_the_turn_of_its_end(gate: Gate, first: str) -> asyncio.Task[None]:
    """A task that waited for `gate` and is cancelled, in the turn in which that ended."""

    async def wait() -> None:
        with Interruption(gate):
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    ends: list[Callable[[], object]] = [gate.force_complete, waiting.cancel]
    for end in ends if first == "ended" else reversed(ends):
        end()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    return waiting


@pytest.mark.parametrize("first", ["ended", "cancelled"])
async def test_a_task_that_is_cancelled_in_the_same_turn_is_cancelled(gate: Gate, first: str) -> None:
    waiting = await cancelled_in_the_turn_of_its_end(gate, first)
    assert waiting.cancelling() == 1


async def test_a_task_that_was_cancelled_before_and_went_on_can_be_interrupted(gate: Gate) -> None:
    this_task().cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(gate.force_complete)
    with Interruption(gate):
        await asyncio.Event().wait()
    assert this_task().uncancel() == 0


async def test_a_timeout_around_it_passes_through(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(), ["key"])

        async def wait() -> None:
            async with asyncio.timeout(5):
                with Interruption(gate):
                    await asyncio.Event().wait()

        with pytest.raises(TimeoutError):
            await wait()
        assert virtual_time.time() == 5
        gate.force_complete()
        assert await untouched()


async def test_of_two_in_nested_blocks_each_ends_its_own(purgatory: Purgatory) -> None:
    outer, inner = Gate(), Gate()
    for gate in (outer, inner):
        purgatory.try_complete_else_watch(gate, ["key"])
    left: list[str] = []
    with Interruption(outer):
        asyncio.get_running_loop().call_soon(inner.force_complete)
        with Interruption(inner):
            await asyncio.Event().wait()
        left.append("inner")
        asyncio.get_running_loop().call_soon(outer.force_complete)
        await asyncio.Event().wait()
    left.append("outer")
    assert left == ["inner", "outer"]
    assert await untouched()


def told_of(loop: asyncio.AbstractEventLoop) -> list[object]:
    """The exceptions that nobody was there for."""
    told: list[object] = []
    loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
    return told


async def test_a_failure_that_goes_up_late_is_nobody_elses_news(purgatory: Purgatory) -> None:
    told = told_of(asyncio.get_running_loop())
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(ArithmeticError("broken"))), ["key"])
    asyncio.get_running_loop().call_soon(gate.force_complete)
    with Interruption(gate):
        try:
            await asyncio.Event().wait()
        finally:
            await a_few_turns()
    with pytest.raises(ArithmeticError, match="broken"):
        gate.result()
    assert told == []


@pytest.mark.parametrize("first", ["ended", "cancelled"])
async def test_a_failure_in_the_turn_in_which_the_task_is_cancelled_is_told(
    purgatory: Purgatory, first: str
) -> None:
    told = told_of(asyncio.get_running_loop())
    error = ArithmeticError("broken")
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(error)), ["key"])

    await cancelled_in_the_turn_of_its_end(gate, first)
    await a_few_turns()
    assert told == [error]


async def test_a_failure_that_was_raised_elsewhere_is_not_told_again(purgatory: Purgatory) -> None:
    told = told_of(asyncio.get_running_loop())
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(Stop())), ["key"])

    async def wait() -> None:
        with Interruption(gate):
            with pytest.raises(Stop):
                gate.force_complete()
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await wait()
    assert told == []


async def test_a_failure_after_the_block_was_left_is_told(purgatory: Purgatory) -> None:
    told = told_of(asyncio.get_running_loop())
    error = ArithmeticError("broken")
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(error)), ["key"])
    with Interruption(gate):
        pass
    gate.force_complete()
    await a_few_turns()
    assert told == [error]
