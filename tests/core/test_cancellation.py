"""Cancelling tasks that await an operation, in every order of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import pytest

from purgatory import OperationState, OperationWithdrawn, Purgatory
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, Stop, a_few_turns, raising


class Waiter:
    """A task that awaits an operation and records the outcome."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.events: list[str] = []
        self.task = asyncio.create_task(self._wait())

    async def _wait(self) -> None:
        try:
            self.events.append(await self.gate)
        except asyncio.CancelledError:
            self.events.append("cancelled")
            raise
        except OperationWithdrawn:
            self.events.append("withdrawn")
        except Exception as error:
            self.events.append(repr(error))

    async def end(self) -> list[str]:
        await asyncio.wait([self.task])
        return self.events


async def waiting(purgatory: Purgatory, timeout: float | None = 60, **hooks: Any) -> tuple[Gate, Waiter]:
    """Return an operation on two keys, and a task that awaits it already."""
    gate = purgatory.try_complete_else_watch(Gate(timeout, "result", **hooks), ["a", "b"])
    waiter = Waiter(gate)
    await asyncio.sleep(0)
    return gate, waiter


async def test_cancelling_a_task_before_it_awaits_leaves_the_operation_pending(purgatory: Purgatory) -> None:
    # An eager task would await at once.
    asyncio.get_running_loop().set_task_factory(None)
    gate = purgatory.try_complete_else_watch(Gate(60), ["a"])
    waiter = Waiter(gate)
    waiter.task.cancel()
    assert await waiter.end() == []
    # No task has awaited it.
    assert gate.state is OperationState.PENDING


async def test_cancelling_a_task_after_completion_and_before_it_resumes_leaves_the_operation_completed(
    purgatory: Purgatory,
) -> None:
    gate, waiter = await waiting(purgatory)
    assert gate.force_complete()
    assert waiter.task.cancel()
    assert await waiter.end() == ["cancelled"]
    assert gate.state is OperationState.COMPLETED
    assert gate.result() == "result"
    assert gate.ran == ["try_complete", "on_complete"]
    assert nothing_is_left(purgatory)


@pytest.mark.parametrize(
    "end",
    [
        lambda purgatory, gate: purgatory.check_and_complete("b"),
        lambda purgatory, gate: gate.force_complete(),
        lambda purgatory, gate: gate.complete("value"),
        lambda purgatory, gate: gate.fail(ValueError("bad")),
    ],
    ids=["check", "force_complete", "complete", "fail"],
)
async def test_an_operation_whose_task_was_cancelled_before_is_withdrawn_and_not_completed(
    purgatory: Purgatory, end: Callable[[Purgatory, Gate], object]
) -> None:
    gate, waiter = await waiting(purgatory)
    gate.opened = True
    assert waiter.task.cancel()
    assert not end(purgatory, gate)
    assert gate.state is OperationState.CANCELLED
    assert await waiter.end() == ["cancelled"]
    assert gate.ran == ["try_complete"]
    assert nothing_is_left(purgatory)
    assert purgatory.statistics().cancelled == 1


@pytest.mark.parametrize("first", ["task", "operation"])
async def test_a_withdrawal_and_a_cancellation_in_one_turn_count_once(
    purgatory: Purgatory, first: str
) -> None:
    gate, waiter = await waiting(purgatory)
    for act in (waiter.task.cancel, gate.cancel) if first == "task" else (gate.cancel, waiter.task.cancel):
        act()
    assert await waiter.end() == ["cancelled"]
    assert purgatory.statistics().cancelled == 1


@pytest.mark.parametrize("first", ["cancel", "expire"])
async def test_expiration_wins_when_the_task_is_cancelled_in_the_same_turn(
    purgatory: Purgatory, first: str
) -> None:
    gate, waiter = await waiting(purgatory)
    for act in ("cancel", "expire") if first == "cancel" else ("expire", "cancel"):
        if act == "cancel":
            waiter.task.cancel()
        else:
            gate.reschedule(0)
    assert await waiter.end() == ["cancelled"]
    assert gate.state is OperationState.EXPIRED
    assert gate.ran == ["try_complete", "on_complete", "on_expiration"]
    assert nothing_is_left(purgatory)


async def test_a_task_may_be_cancelled_by_a_hook_of_the_operation_that_it_awaits(
    purgatory: Purgatory,
) -> None:
    gate, waiter = await waiting(purgatory)
    gate.completing = waiter.task.cancel
    gate.force_complete()
    assert await waiter.end() == ["cancelled"]
    assert gate.state is OperationState.COMPLETED


async def test_the_exception_of_an_operation_whose_only_waiter_was_cancelled_in_that_turn_is_reported(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    error = ValueError("bad")
    gate, waiter = await waiting(purgatory, completing=raising(error))
    gate.force_complete()
    waiter.task.cancel()
    assert await waiter.end() == ["cancelled"]
    await a_few_turns()
    assert [context["exception"] for context in reported] == [error]


# Many waiters


async def test_an_operation_stays_while_another_task_awaits_it(purgatory: Purgatory) -> None:
    gate, first = await waiting(purgatory)
    others = [Waiter(gate) for _ in range(9)]
    await asyncio.sleep(0)
    for waiter in others:
        waiter.task.cancel()
        assert await waiter.end() == ["cancelled"]
        assert gate.state is OperationState.PENDING
    gate.opened = True
    assert purgatory.check_and_complete("a") == 1
    assert await first.end() == ["result"]


async def test_a_task_that_begins_to_await_when_the_last_waiter_is_cancelled_keeps_the_operation(
    purgatory: Purgatory,
) -> None:
    gate, first = await waiting(purgatory)
    second = Waiter(gate)
    # The second task runs before the cancelled one does.
    first.task.cancel()
    assert await first.end() == ["cancelled"]
    assert gate.state is OperationState.PENDING
    gate.force_complete()
    assert await second.end() == ["result"]


async def test_waiters_that_are_not_cancelled_in_the_turn_of_completion_get_the_result(
    purgatory: Purgatory,
) -> None:
    gate, first = await waiting(purgatory)
    second, third = Waiter(gate), Waiter(gate)
    await asyncio.sleep(0)
    first.task.cancel()
    gate.force_complete()
    third.task.cancel()
    assert await first.end() == ["cancelled"]
    assert await second.end() == ["result"]
    assert await third.end() == ["cancelled"]
    assert nothing_is_left(purgatory)


async def test_awaiting_an_operation_that_its_last_waiter_withdrew_says_so(
    purgatory: Purgatory,
) -> None:
    gate, waiter = await waiting(purgatory)
    waiter.task.cancel()
    await waiter.end()
    with pytest.raises(OperationWithdrawn, match="because the last task that awaited it was cancelled"):
        await gate


# Timeouts around the await


async def test_a_shorter_timeout_of_the_operation_wins_over_an_outer_one(purgatory: Purgatory) -> None:
    with anyio.fail_after(60):
        async with asyncio.timeout(60):
            assert await purgatory.try_complete_else_watch(Gate(0.001, "expired"), ["a"]) == "expired"


@pytest.mark.usefixtures("virtual_time")
async def test_an_outer_timeout_at_the_deadline_itself_leaves_nothing_behind(purgatory: Purgatory) -> None:
    for _ in range(10):
        gate = Gate(0.5)
        try:
            async with asyncio.timeout(0.5):
                await purgatory.try_complete_else_watch(gate, ["a"])
        except TimeoutError:
            assert gate.state in (OperationState.CANCELLED, OperationState.EXPIRED)
        else:
            assert gate.expired
        assert nothing_is_left(purgatory)


# Task groups


async def test_a_failing_anyio_task_group_withdraws_the_operations_of_its_tasks(purgatory: Purgatory) -> None:
    gates = [Gate(60), Gate(None)]

    async def wait(gate: Gate) -> None:
        await purgatory.try_complete_else_watch(gate, ["a", "b"])

    async def fail() -> None:
        raise ValueError("bad")

    async def run_them() -> None:
        async with anyio.create_task_group() as group:
            for gate in gates:
                group.start_soon(wait, gate)
            await asyncio.sleep(0)
            group.start_soon(fail)

    with pytest.raises(ExceptionGroup) as caught:
        await run_them()
    assert caught.group_contains(ValueError, match="bad")
    assert [gate.state for gate in gates] == [OperationState.CANCELLED] * 2
    assert nothing_is_left(purgatory)


async def test_a_hook_may_cancel_the_scope_of_a_task_group(purgatory: Purgatory) -> None:
    async def wait(gate: Gate) -> None:
        await gate

    async with anyio.create_task_group() as group:
        gate = Gate(60, completing=group.cancel_scope.cancel)
        other = Gate(60)
        for waited in (gate, other):
            purgatory.try_complete_else_watch(waited, ["a"])
            group.start_soon(wait, waited)
        await asyncio.sleep(0)
        gate.force_complete()
    assert gate.state is OperationState.COMPLETED
    assert other.state is OperationState.CANCELLED


# Closing


@pytest.mark.parametrize(
    ("cancel_pending", "outcome"),
    [(False, ["result"]), (True, ["withdrawn"])],
    ids=["expiring", "withdrawing"],
)
async def test_closing_ends_every_waiter(cancel_pending: bool, outcome: list[str]) -> None:
    purgatory = Purgatory()
    purgatory.start()
    pairs = [await waiting(purgatory, timeout) for timeout in (60, None, 1e-3)]
    await purgatory.aclose(cancel_pending=cancel_pending)
    assert [await waiter.end() for _, waiter in pairs] == [outcome] * 3


async def test_closing_in_the_turn_in_which_a_waiter_is_cancelled_ends_both() -> None:
    purgatory = Purgatory()
    purgatory.start()
    gate, waiter = await waiting(purgatory)
    waiter.task.cancel()
    await purgatory.aclose()
    assert await waiter.end() == ["cancelled"]
    assert gate.state in (OperationState.EXPIRED, OperationState.CANCELLED)
    assert nothing_is_left(purgatory)


# Cancellation is not swallowed


async def test_the_message_of_a_cancellation_reaches_the_task(purgatory: Purgatory) -> None:
    gate, waiter = await waiting(purgatory)
    waiter.task.cancel("shutting down")
    with pytest.raises(asyncio.CancelledError, match="shutting down"):
        await waiter.task
    assert gate.state is OperationState.CANCELLED


async def test_a_task_that_catches_its_cancellation_may_await_again(purgatory: Purgatory) -> None:
    async def wait() -> str:
        try:
            return await purgatory.try_complete_else_watch(Gate(60), ["a"])
        except asyncio.CancelledError:
            return await purgatory.try_complete_else_watch(Gate(60, "second"), ["b"])

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    for operation in purgatory.operations("b"):
        operation.force_complete()
    assert await task == "second"


# Awaiting without a task


@pytest.mark.parametrize("error", [ValueError("thrown in"), Stop("thrown in"), GeneratorExit()], ids=repr)
async def test_an_exception_thrown_into_a_waiting_coroutine_comes_out_of_it(
    purgatory: Purgatory, error: BaseException
) -> None:
    async def wait() -> str:
        return await gate

    gate = purgatory.try_complete_else_watch(Gate(60), ["a"])
    coroutine = wait()
    coroutine.send(None)
    with pytest.raises(type(error)) as caught:
        coroutine.throw(error)
    assert caught.value is error
    assert gate.state is OperationState.CANCELLED


async def test_closing_a_waiting_async_generator_withdraws_the_operation(purgatory: Purgatory) -> None:
    gate = Gate(60)

    async def records() -> AsyncGenerator[str]:
        yield "first"
        yield await purgatory.try_complete_else_watch(gate, ["a"])

    generator = records()
    assert await anext(generator) == "first"
    second = asyncio.ensure_future(anext(generator))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    await generator.aclose()
    assert gate.state is OperationState.CANCELLED
    assert nothing_is_left(purgatory)


# Withdrawal by others


async def test_a_task_group_ends_loudly_when_others_withdraw_what_its_tasks_await(
    purgatory: Purgatory,
) -> None:
    async def wait(gate: Gate) -> None:
        await gate

    async def withdraw() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait(gate))
            siblings.append(group.create_task(wait(other)))
            await asyncio.sleep(0)
            purgatory.cancel_for_key("a")

    siblings: list[asyncio.Task[None]] = []
    gate, other = (purgatory.try_complete_else_watch(Gate(60), [key]) for key in "ab")
    with pytest.raises(ExceptionGroup) as caught:
        await withdraw()
    assert [type(error) for error in caught.value.exceptions] == [OperationWithdrawn]
    assert siblings[0].cancelled()


async def test_a_task_that_is_cancelled_in_the_turn_of_the_withdrawal_is_cancelled(
    purgatory: Purgatory,
) -> None:
    gate, waiter = await waiting(purgatory)
    other = Waiter(gate)
    await asyncio.sleep(0)
    gate.cancel()
    waiter.task.cancel()
    assert await waiter.end() == ["cancelled"]
    assert await other.end() == ["withdrawn"]


async def test_the_error_of_a_closed_purgatory_names_it() -> None:
    purgatory = Purgatory("polls")
    purgatory.start()
    gate, waiter = await waiting(purgatory)
    await purgatory.aclose(cancel_pending=True)
    assert await waiter.end() == ["withdrawn"]
    with pytest.raises(OperationWithdrawn, match="Gate was withdrawn by closing purgatory 'polls'"):
        gate.result()
