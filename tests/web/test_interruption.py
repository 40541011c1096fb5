"""An operation ends a wait by a cancellation that no other code ever sees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from purgatory import Purgatory
from purgatory.testing import VirtualTimeLoop
from purgatory.web.interruption import Interruption
from tests.operations import Gate, Stop, a_few_turns, raising


def current_task() -> asyncio.Task[Any]:
    return cast("asyncio.Task[Any]", asyncio.current_task())


async def no_cancellation_is_left() -> bool:
    """Whether no cancellation of this task is counted or about to arrive."""
    await a_few_turns()
    return not current_task().cancelling()


@pytest.fixture
def gate(purgatory: Purgatory) -> Gate:
    return purgatory.try_complete_else_watch(Gate(name="answer"), ["key"])


async def test_an_operation_that_is_done_ends_the_wait_without_another_task(gate: Gate) -> None:
    tasks = asyncio.all_tasks()
    asyncio.get_running_loop().call_soon(gate.force_complete)
    with Interruption(gate):
        assert asyncio.all_tasks() == tasks
        await asyncio.Event().wait()
        raise AssertionError("the wait went on")
    assert gate.result() == "answer"
    assert await no_cancellation_is_left()


async def test_the_awaited_code_may_clean_up_first(gate: Gate) -> None:
    cleaned: list[str] = []

    async def slow_to_cancel() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await a_few_turns()
            cleaned.append("up")

    asyncio.get_running_loop().call_soon(gate.force_complete)
    with Interruption(gate):
        await slow_to_cancel()
    assert cleaned == ["up"]
    assert await no_cancellation_is_left()


async def test_after_the_block_the_end_of_the_operation_cancels_nothing(gate: Gate) -> None:
    with Interruption(gate):
        await asyncio.sleep(0)
    gate.force_complete()
    assert await no_cancellation_is_left()


async def test_a_block_left_in_the_turn_in_which_the_operation_ends_is_not_cancelled(gate: Gate) -> None:
    with Interruption(gate):
        gate.force_complete()
    assert await no_cancellation_is_left()


async def test_an_operation_that_ends_while_the_task_runs_ends_its_next_wait(gate: Gate) -> None:
    with Interruption(gate):
        gate.force_complete()
        await asyncio.Event().wait()
        raise AssertionError("the wait went on")
    assert await no_cancellation_is_left()


async def test_code_that_swallows_the_cancellation_may_continue(gate: Gate) -> None:
    asyncio.get_running_loop().call_soon(gate.force_complete)
    with Interruption(gate):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            result = await asyncio.sleep(0, "continued")
    assert result == "continued"
    assert await no_cancellation_is_left()


async def test_an_exception_raised_instead_of_the_cancellation_is_raised(gate: Gate) -> None:
    async def wait() -> None:
        with Interruption(gate):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ConnectionError from None

    asyncio.get_running_loop().call_soon(gate.force_complete)
    with pytest.raises(ConnectionError):
        await wait()
    assert await no_cancellation_is_left()


async def cancelled_in_the_turn_of_its_end(gate: Gate, first: str) -> asyncio.Task[None]:
    """A task that waited for `gate`, and was cancelled in the turn in which `gate` ended."""

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
async def test_a_task_that_is_also_cancelled_by_others_is_cancelled(gate: Gate, first: str) -> None:
    waiting = await cancelled_in_the_turn_of_its_end(gate, first)
    assert waiting.cancelling() == 1


async def test_a_task_that_survived_an_earlier_cancellation_can_be_interrupted(gate: Gate) -> None:
    current_task().cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(gate.force_complete)
    with Interruption(gate):
        await asyncio.Event().wait()
    assert current_task().uncancel() == 0


async def test_a_timeout_around_the_block_is_raised(virtual_time: VirtualTimeLoop) -> None:
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
        assert await no_cancellation_is_left()


async def test_of_two_nested_blocks_each_ends_with_its_own_operation(purgatory: Purgatory) -> None:
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
    assert await no_cancellation_is_left()


def handled_exceptions() -> list[object]:
    """The exceptions that the loop's exception handler receives from here on."""
    handled: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: handled.append(context["exception"]))
    return handled


async def test_a_failure_that_is_read_after_the_block_is_not_reported(purgatory: Purgatory) -> None:
    handled = handled_exceptions()
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(ArithmeticError("broken"))), ["key"])
    asyncio.get_running_loop().call_soon(gate.force_complete)
    with Interruption(gate):
        try:
            await asyncio.Event().wait()
        finally:
            await a_few_turns()
    with pytest.raises(ArithmeticError, match="broken"):
        gate.result()
    assert handled == []


async def test_a_failure_in_the_turn_in_which_the_block_is_left_is_read_after_it(
    purgatory: Purgatory,
) -> None:
    handled = handled_exceptions()
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(ArithmeticError("broken"))), ["key"])
    with Interruption(gate):
        gate.force_complete()
    with pytest.raises(ArithmeticError, match="broken"):
        gate.result()
    assert handled == []


@pytest.mark.parametrize("first", ["ended", "cancelled"])
async def test_a_failure_is_reported_when_the_task_is_cancelled_in_the_same_turn(
    purgatory: Purgatory, first: str
) -> None:
    handled = handled_exceptions()
    error = ArithmeticError("broken")
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(error)), ["key"])

    await cancelled_in_the_turn_of_its_end(gate, first)
    await a_few_turns()
    # An operation whose task is cancelled already completes nothing.
    assert handled == ([error] if first == "ended" else [])


async def test_a_base_exception_that_was_raised_already_is_not_reported(purgatory: Purgatory) -> None:
    handled = handled_exceptions()
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(Stop())), ["key"])

    async def wait() -> None:
        with Interruption(gate):
            with pytest.raises(Stop):
                gate.force_complete()
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await wait()
    assert handled == []


async def test_a_failure_after_the_block_is_reported(purgatory: Purgatory) -> None:
    handled = handled_exceptions()
    error = ArithmeticError("broken")
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(error)), ["key"])
    with Interruption(gate):
        pass
    gate.force_complete()
    await a_few_turns()
    assert handled == [error]
