"""An operation works with the tools of asyncio and anyio that wait, or their error says why not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from purgatory import DelayedOperation, OperationState, Purgatory
from tests.operations import Gate, a_few_turns, raising

PENDING, CANCELLED = OperationState.PENDING, OperationState.CANCELLED


def park(purgatory: Purgatory, name: str = "gate", timeout: float | None = None) -> Gate:
    return purgatory.try_complete_else_watch(Gate(timeout, name), [name])


def open_soon(purgatory: Purgatory, *gates: Gate) -> None:
    """Complete the gates in later turns of the loop, one after the other."""
    if gates:
        gates[0].opened = True
        loop = asyncio.get_running_loop()
        loop.call_soon(purgatory.check_and_complete, gates[0].name)
        loop.call_soon(open_soon, purgatory, *gates[1:])


async def awaiting(gate: Gate) -> str:
    return await gate


async def test_gather_gives_the_results_in_the_order_of_its_arguments(purgatory: Purgatory) -> None:
    first, second = park(purgatory, "first"), park(purgatory, "second")
    open_soon(purgatory, second, first)
    assert list(await asyncio.gather(first, second, first)) == ["first", "second", "first"]


@dataclass(eq=False)
class Reply(DelayedOperation[str]):
    server: str

    def __post_init__(self) -> None:
        super().__init__(None)

    def try_complete(self) -> bool:
        return self.force_complete()

    def on_complete(self) -> str:
        return self.server


@dataclass
class ComparedReply(Reply):
    """It compares its fields, which is the default, and so it has no hash."""


async def test_gather_takes_a_dataclass_that_does_not_compare_its_fields(purgatory: Purgatory) -> None:
    reply = purgatory.try_complete_else_watch(Reply("ada"), ["ada"])
    assert list(await asyncio.gather(reply)) == ["ada"]


async def test_gather_refuses_a_dataclass_that_compares_its_fields(purgatory: Purgatory) -> None:
    reply = purgatory.try_complete_else_watch(ComparedReply("ada"), ["ada"])
    with pytest.raises(TypeError, match="unhashable"):
        await asyncio.gather(reply)
    assert await reply == "ada"


async def test_gather_raises_what_a_hook_raised_and_leaves_the_other_operations(purgatory: Purgatory) -> None:
    failing, other = park(purgatory, "failing"), park(purgatory, "other")
    failing.completing = raising(LookupError("in a hook"))
    open_soon(purgatory, failing)
    with pytest.raises(LookupError, match="in a hook"):
        await asyncio.gather(failing, other)
    assert other.state is PENDING


async def test_cancelling_a_gather_withdraws_its_operations(purgatory: Purgatory) -> None:
    gates = [park(purgatory), park(purgatory)]
    gathering = asyncio.gather(*gates)
    await a_few_turns()
    gathering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gathering
    assert [gate.state for gate in gates] == [CANCELLED, CANCELLED]


async def test_as_completed_gives_the_results_as_they_come(purgatory: Purgatory) -> None:
    first, second = park(purgatory, "first"), park(purgatory, "second")
    open_soon(purgatory, second, first)
    assert [await result for result in asyncio.as_completed([first, second])] == ["second", "first"]


async def test_wait_names_ensure_future(purgatory: Purgatory) -> None:
    gate: Any = park(purgatory)
    with pytest.raises(AttributeError, match=r"Gate is an awaitable, .*asyncio\.ensure_future\(operation\)"):
        await asyncio.wait([gate])
    assert not hasattr(gate, "add_done_callback")


async def test_wait_takes_the_tasks_that_ensure_future_makes(purgatory: Purgatory) -> None:
    first, second = park(purgatory, "first"), park(purgatory, "second")
    tasks = {asyncio.ensure_future(first), asyncio.ensure_future(second)}
    open_soon(purgatory, second)
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in done] == ["second"]
    pending.pop().cancel()
    await a_few_turns()
    assert first.state is CANCELLED


async def test_wait_with_a_timeout_withdraws_nothing(purgatory: Purgatory) -> None:
    gate = park(purgatory)
    task = asyncio.ensure_future(gate)
    await asyncio.wait([task], timeout=0)
    assert gate.state is PENDING
    open_soon(purgatory, gate)
    assert await task == "gate"


async def by_wait_for(gate: Gate) -> None:
    await asyncio.wait_for(gate, 0.001)


async def by_timeout(gate: Gate) -> None:
    async with asyncio.timeout(0.001):
        await gate


async def by_fail_after(gate: Gate) -> None:
    with anyio.fail_after(0.001):
        await gate


LIMITS = [by_wait_for, by_timeout, by_fail_after]


@pytest.mark.parametrize("limited", LIMITS)
async def test_a_limit_on_the_wait_raises_and_withdraws_the_operation(
    purgatory: Purgatory, limited: Callable[[Gate], Coroutine[Any, Any, None]]
) -> None:
    gate = park(purgatory)
    with pytest.raises(TimeoutError):
        await limited(gate)
    assert gate.state is CANCELLED
    assert gate.ran == ["try_complete"]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.parametrize("limited", LIMITS)
async def test_a_limit_leaves_an_operation_that_another_task_awaits(
    purgatory: Purgatory, limited: Callable[[Gate], Coroutine[Any, Any, None]]
) -> None:
    gate = park(purgatory)
    other = asyncio.ensure_future(gate)
    await a_few_turns()
    with pytest.raises(TimeoutError):
        await limited(gate)
    assert gate.state is PENDING
    open_soon(purgatory, gate)
    assert await other == "gate"


async def test_wait_for_zero_seconds_never_looks_at_the_operation_unless_tasks_start_eagerly(
    purgatory: Purgatory,
) -> None:
    """asyncio makes a task, and cancels it before it starts. A coroutine would not run either."""
    eager = asyncio.get_running_loop().get_task_factory() is not None
    done, pending = park(purgatory, "done"), park(purgatory, "pending")
    done.force_complete()
    if eager:
        assert await asyncio.wait_for(done, 0) == "done"
    else:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(done, 0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(pending, 0)
    assert pending.state is (CANCELLED if eager else PENDING)


async def by_timeout_of_zero(gate: Gate) -> str:
    async with asyncio.timeout(0):
        return await gate


async def by_fail_after_zero(gate: Gate) -> str:
    with anyio.fail_after(0):
        return await gate


@pytest.mark.parametrize("limited", [by_timeout_of_zero, by_fail_after_zero])
async def test_a_block_of_zero_seconds_gives_the_result_of_an_operation_that_is_done(
    purgatory: Purgatory, limited: Callable[[Gate], Coroutine[Any, Any, str]]
) -> None:
    done, pending = park(purgatory, "done"), park(purgatory, "pending")
    done.force_complete()
    assert await limited(done) == "done"
    with pytest.raises(TimeoutError):
        await limited(pending)
    assert pending.state is CANCELLED


async def test_move_on_after_moves_on_and_withdraws_the_operation(purgatory: Purgatory) -> None:
    gate = park(purgatory)
    with anyio.move_on_after(0.001) as scope:
        await gate
    assert scope.cancelled_caught
    assert gate.state is CANCELLED


async def test_shield_keeps_the_operation_when_the_wait_is_cancelled(purgatory: Purgatory) -> None:
    gate = park(purgatory)
    shielded = asyncio.shield(gate)
    await a_few_turns()
    shielded.cancel()
    await a_few_turns()
    assert gate.state is PENDING
    open_soon(purgatory, gate)
    assert await gate == "gate"


async def test_a_shielded_scope_of_anyio_waits_for_the_operation(purgatory: Purgatory) -> None:
    gate = park(purgatory)
    results = []
    with anyio.CancelScope() as outer:
        outer.cancel()
        with anyio.CancelScope(shield=True):
            open_soon(purgatory, gate)
            results.append(await gate)
    assert results == ["gate"]


async def test_task_groups_run_a_coroutine_that_awaits_the_operation(purgatory: Purgatory) -> None:
    first, second = park(purgatory, "first"), park(purgatory, "second")
    open_soon(purgatory, first, second)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(awaiting(first))
    async with anyio.create_task_group() as group:
        group.start_soon(awaiting, second)
    assert (task.result(), second.result()) == ("first", "second")


async def fail_beside(gate: Gate) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(awaiting(gate))
        await a_few_turns()
        raise LookupError("in the group")


async def test_a_task_group_that_fails_withdraws_the_operation_that_its_task_awaits(
    purgatory: Purgatory,
) -> None:
    gate = park(purgatory)
    with pytest.raises(ExceptionGroup) as caught:
        await fail_beside(gate)
    assert caught.group_contains(LookupError)
    assert gate.state is CANCELLED


@pytest.mark.parametrize(
    "start",
    [
        asyncio.create_task,
        lambda gate: asyncio.run_coroutine_threadsafe(gate, asyncio.get_running_loop()),
    ],
    ids=["create_task", "run_coroutine_threadsafe"],
)
async def test_what_takes_coroutines_alone_says_so(
    purgatory: Purgatory, start: Callable[[Any], object]
) -> None:
    with pytest.raises(TypeError, match="coroutine"):
        start(park(purgatory))


async def in_task_group(gate: Any) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(gate)


async def by_start_soon(gate: Any) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(gate)


@pytest.mark.parametrize(
    ("start", "why"),
    [(in_task_group, "a coroutine was expected, got <Gate pending"), (by_start_soon, "not callable")],
)
async def test_a_task_group_refuses_the_operation_itself(
    purgatory: Purgatory, start: Callable[[Any], Coroutine[Any, Any, None]], why: str
) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await start(park(purgatory))
    assert caught.group_contains(TypeError, match=why)


async def test_cancelling_the_future_of_another_thread_withdraws_the_operation(purgatory: Purgatory) -> None:
    gate = park(purgatory)
    waiting = asyncio.run_coroutine_threadsafe(awaiting(gate), asyncio.get_running_loop())
    await a_few_turns()
    await asyncio.to_thread(waiting.cancel)
    await a_few_turns()
    assert gate.state is CANCELLED
