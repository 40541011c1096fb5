"""The reaper in the caller's task group, and what happens to waiters when it fails or its loop ends."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import anyio
import pytest

from purgatory import DelayedOperation, OperationState, Purgatory, PurgatoryClosed
from purgatory.observer import Timing
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.core.purgatories import nothing_is_left, refuses
from tests.operations import Gate, Stop, raising

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


# `run` in the caller's task group


async def test_run_in_a_cancelled_anyio_task_group_closes_the_purgatory() -> None:
    purgatory = Purgatory()
    async with anyio.create_task_group() as group:
        await group.start(purgatory.run)
        assert await purgatory.try_complete_else_watch(Gate(0.001, "expired"), ["a"]) == "expired"
        gate = purgatory.try_complete_else_watch(Gate(60), ["a"])
        group.cancel_scope.cancel()
    assert gate.expired
    assert nothing_is_left(purgatory)
    assert await refuses(purgatory)


async def test_run_in_a_failing_anyio_task_group_closes_the_purgatory() -> None:
    purgatory = Purgatory()
    gate = Gate(60)

    async def block() -> None:
        async with anyio.create_task_group() as group:
            await group.start(purgatory.run)
            purgatory.try_complete_else_watch(gate, ["a"])
            raise ValueError("mine")

    with pytest.raises(ExceptionGroup) as caught:
        await block()
    assert caught.group_contains(ValueError, match="mine")
    assert gate.done
    assert nothing_is_left(purgatory)


async def test_run_in_an_asyncio_task_group_returns_when_the_purgatory_is_closed() -> None:
    purgatory = Purgatory()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(purgatory.run())
        await asyncio.sleep(0)
        gate = purgatory.try_complete_else_watch(Gate(60), ["a"])
        await purgatory.aclose(cancel_pending=True)
        assert gate.state is OperationState.CANCELLED
        assert not running.done(), "closing does not wait for the caller's task"
    assert running.done()
    assert not running.cancelled()
    assert nothing_is_left(purgatory)


@pytest.mark.usefixtures("virtual_time")
async def test_run_cancelled_twice_while_it_closes_leaves_no_waiter_hanging() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    purgatory = Purgatory(slice_seconds=0.001)
    running = asyncio.create_task(purgatory.run())
    await asyncio.sleep(0)
    slow = partial(loop.jump, 0.001)
    gates = [purgatory.try_complete_else_watch(Gate(60, completing=slow), [n]) for n in range(100)]
    running.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not running.done()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert all(gate.expired for gate in gates)
    assert nothing_is_left(purgatory)


async def test_run_closes_the_purgatory_when_task_status_started_raises() -> None:
    class Unwanted:
        def started(self, value: object = None) -> None:
            raise ValueError("too late")

    purgatory = Purgatory()
    with pytest.raises(ValueError, match="too late"):
        await purgatory.run(task_status=Unwanted())
    assert await refuses(purgatory)
    assert nothing_is_left(purgatory)


# A reaper that fails. In virtual time no operation expires while it is offered, where its hook would raise.


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("hook", ["completing", "expiring"])
async def test_a_failing_reaper_reports_its_error_and_closes_the_purgatory(
    reported: list[dict[str, Any]], hook: str
) -> None:
    stop = Stop("reaper")
    purgatory = Purgatory("loud")
    purgatory.start()
    bad = Gate(0.001)
    setattr(bad, hook, raising(stop))
    purgatory.try_complete_else_watch(bad, ["a"])
    behind = purgatory.try_complete_else_watch(Gate(0.001), ["b"])
    awaited = purgatory.try_complete_else_watch(Gate(60), ["a", "b"])
    with pytest.raises(PurgatoryClosed, match="loud") as caught:
        await awaited
    assert caught.value.__cause__ is stop
    assert behind.done
    assert awaited.state is OperationState.FAILED
    assert awaited.ran == ["try_complete"]
    assert bad.state is OperationState.FAILED
    assert bad.exception() is stop
    assert nothing_is_left(purgatory)
    assert await refuses(purgatory)
    told = [(context["message"], context["exception"]) for context in reported]
    assert ("the reaper of purgatory 'loud' failed; it is closed", stop) in told
    await purgatory.aclose()
    with pytest.raises(PurgatoryClosed):
        purgatory.start()


@pytest.mark.usefixtures("virtual_time")
async def test_a_failing_reaper_does_not_hide_the_exception_that_leaves_the_block(
    reported: list[dict[str, Any]],
) -> None:
    async def block() -> None:
        async with Purgatory() as purgatory:
            purgatory.try_complete_else_watch(Gate(0.001, expiring=raising(Stop())), ["a"])
            await purgatory.try_complete_else_watch(Gate(60), ["a"])

    with pytest.raises(PurgatoryClosed):
        await block()
    assert len(reported) == 1


@pytest.mark.usefixtures("virtual_time")
async def test_a_failing_reaper_in_a_task_group_fails_the_group() -> None:
    purgatory = Purgatory()
    caught: list[BaseException] = []

    async def wait() -> None:
        try:
            await purgatory.try_complete_else_watch(Gate(60), ["a"])
        except PurgatoryClosed as error:
            caught.append(error)

    async def block() -> None:
        async with anyio.create_task_group() as group:
            await group.start(purgatory.run)
            group.start_soon(wait)
            purgatory.try_complete_else_watch(Gate(0.001, expiring=raising(Stop("reaper"))), ["a"])

    with pytest.raises(BaseExceptionGroup) as raised:
        await block()
    assert raised.group_contains(Stop, match="reaper")
    assert len(caught) <= 1
    assert nothing_is_left(purgatory)
    assert await refuses(purgatory)


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("structured", [False, True], ids=["start", "run"])
async def test_a_hook_that_raises_cancelled_error_does_not_close_the_purgatory_silently(
    reported: list[dict[str, Any]], structured: bool
) -> None:
    purgatory = Purgatory()
    running: asyncio.Task[None] | None = None
    if structured:
        running = asyncio.create_task(purgatory.run())
        await asyncio.sleep(0)
    else:
        purgatory.start()
    # Reading the result of a cancelled task is enough to raise CancelledError.
    expiring = raising(asyncio.CancelledError())
    bad = purgatory.try_complete_else_watch(Gate(0.001, expiring=expiring), ["a"])
    other = purgatory.try_complete_else_watch(Gate(0.02, "unharmed"), ["b"])
    try:
        outcome = await other
    except asyncio.CancelledError:
        outcome = "withdrawn"
    except PurgatoryClosed:
        outcome = "told"
    assert bad.state is OperationState.FAILED
    # Either the hook harms only its own operation, or the failure of the reaper reaches the waiters.
    assert outcome == "told" or (outcome == "unharmed" and "open" in repr(purgatory))
    assert reported
    await purgatory.aclose()
    if running is not None:
        await asyncio.wait([running])


# A loop that ends before the purgatory is closed


def test_a_loop_torn_down_around_an_open_purgatory_withdraws_pending_operations(
    loop_factory: LoopFactory,
) -> None:
    events: list[str] = []
    waits: list[asyncio.Task[None]] = []

    async def wait(gate: Gate) -> None:
        try:
            await gate
        except asyncio.CancelledError:
            events.append("cancelled")
            raise

    async def main() -> tuple[Purgatory, list[Gate]]:
        purgatory = Purgatory()
        purgatory.start()
        gates = [purgatory.try_complete_else_watch(Gate(timeout), ["a", "b"]) for timeout in (60, None)]
        waits.append(asyncio.create_task(wait(gates[0])))
        await asyncio.sleep(0)
        return purgatory, gates

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        purgatory, gates = runner.run(main())
    assert [gate.state for gate in gates] == [OperationState.CANCELLED] * 2
    assert [gate.ran for gate in gates] == [["try_complete"]] * 2
    assert events == ["cancelled"]
    assert nothing_is_left(purgatory)
    purgatory.check_and_complete_threadsafe("a")
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert runner.run(refuses(purgatory))
        runner.run(purgatory.aclose())


def test_a_loop_torn_down_withdraws_all_operations_even_if_that_takes_long() -> None:
    class Slow:
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            loop.jump(1)

        def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
            raise NotImplementedError

    async def main() -> Purgatory:
        purgatory = Purgatory(observers=[Slow()])
        purgatory.start()
        for number in range(100):
            purgatory.try_complete_else_watch(Gate(60), ["all", number])
        await asyncio.sleep(0)
        return purgatory

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        running = runner.get_loop()
        assert isinstance(running, VirtualTimeLoop)
        loop = running
        purgatory = runner.run(main())
    assert purgatory.statistics().cancelled == 100
    assert nothing_is_left(purgatory)


def test_a_loop_that_is_dropped_without_a_close_frees_all_operations(loop_factory: LoopFactory) -> None:
    async def main() -> weakref.ref[Gate]:
        purgatory = Purgatory()
        purgatory._open_on(asyncio.get_running_loop())
        gates = [purgatory.try_complete_else_watch(Gate(60), ["all", n % 9]) for n in range(50_000)]
        return weakref.ref(gates[0])

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        ref = runner.run(main())
    gc.collect()
    assert ref() is None


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_freeing_a_purgatory_with_200_000_linked_operations_does_not_recurse() -> None:
    purgatory = ManualClock().purgatory()
    for _ in range(200_000):
        purgatory.try_complete_else_watch(Gate(60), ["all"])
    ref = weakref.ref(purgatory.operations("all")[0])
    del purgatory
    gc.collect()
    assert ref() is None
