"""Opening and closing a purgatory, and the state that is left when either goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, NoReturn

import anyio
import pytest
import pytest_asyncio

from purgatory import OperationState, Purgatory, PurgatoryClosed
from purgatory.testing import VirtualTimeLoop, WouldWaitForever
from tests.core.purgatories import nothing_is_left, refuses
from tests.operations import Gate, Stop, a_few_turns, raising

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def other_tasks() -> set[asyncio.Task[Any]]:
    current = asyncio.current_task()
    return {task for task in asyncio.all_tasks() if task is not current}


# The `async with` block


async def test_the_block_opens_and_closes_the_purgatory() -> None:
    before = other_tasks()
    purgatory = Purgatory("block")
    assert repr(purgatory) == "<Purgatory 'block' new pending=0 keys=0>"
    async with purgatory as entered:
        assert entered is purgatory
        gate = purgatory.try_complete_else_watch(Gate(60), ["a", "b"])
        assert repr(purgatory) == "<Purgatory 'block' open pending=1 keys=2>"
        assert {task.get_name() for task in other_tasks() - before} == {"block reaper"}
    assert repr(purgatory) == "<Purgatory 'block' closed pending=0 keys=0>"
    assert gate.expired
    assert nothing_is_left(purgatory)
    assert other_tasks() == before


@pytest_asyncio.fixture
async def opened_elsewhere() -> AsyncIterator[tuple[Purgatory, asyncio.Task[Any] | None]]:
    async with Purgatory() as purgatory:
        left = Gate(60)
        yield purgatory, asyncio.current_task()
        purgatory.try_complete_else_watch(left, ["a"])
    # The teardown runs in another task than the setup, without an error.
    assert left.expired
    assert nothing_is_left(purgatory)


async def test_the_block_may_be_entered_and_left_by_different_tasks(
    opened_elsewhere: tuple[Purgatory, asyncio.Task[Any] | None],
) -> None:
    purgatory, opener = opened_elsewhere
    assert asyncio.current_task() is not opener
    assert await purgatory.try_complete_else_watch(Gate(0.001, "done"), ["a"]) == "done"
    assert purgatory.statistics().expired == 1


async def test_a_cancel_scope_around_the_opening_does_not_reach_the_reaper() -> None:
    purgatory = Purgatory()
    with anyio.CancelScope() as scope:
        purgatory.start()
        scope.cancel()
        await asyncio.sleep(0)
    async with asyncio.TaskGroup() as group:
        opening = Purgatory()
        group.create_task(opening.__aenter__())
    for opened in (purgatory, opening):
        assert await opened.try_complete_else_watch(Gate(0.001, "alive"), ["a"]) == "alive"
        await opened.aclose()


@pytest.mark.parametrize(
    "error", [ValueError("mine"), ExceptionGroup("mine", [KeyError()]), Stop("mine")], ids=repr
)
async def test_an_exception_leaves_the_block_unchanged(error: BaseException) -> None:
    purgatory = Purgatory()
    gate = Gate(60)

    async def block() -> None:
        async with purgatory:
            purgatory.try_complete_else_watch(gate, ["a"])
            raise error

    with pytest.raises(type(error)) as caught:
        await block()
    assert caught.value is error
    assert error.__cause__ is None
    assert error.__context__ is None
    assert gate.state is OperationState.CANCELLED
    assert nothing_is_left(purgatory)


async def test_a_cancelled_block_withdraws_what_is_pending_and_stays_cancelled() -> None:
    purgatory = Purgatory()
    gate = Gate(60)

    async def block() -> None:
        async with purgatory:
            purgatory.try_complete_else_watch(gate, ["a"])
            await asyncio.Event().wait()

    task = asyncio.create_task(block())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert gate.state is OperationState.CANCELLED
    assert nothing_is_left(purgatory)


# start and aclose


async def test_where_the_reaper_cannot_be_started_the_purgatory_is_closed() -> None:
    error = MemoryError("no task")

    def refuse(loop: asyncio.AbstractEventLoop, coroutine: object, /, **_: Any) -> NoReturn:
        raise error

    loop = asyncio.get_running_loop()
    usual = loop.get_task_factory()
    loop.set_task_factory(refuse)
    purgatory = Purgatory()
    try:
        with pytest.raises(MemoryError):
            purgatory.start()
    finally:
        loop.set_task_factory(usual)
    assert await refuses(purgatory)
    await purgatory.aclose()
    assert nothing_is_left(purgatory)


def test_start_needs_a_running_loop() -> None:
    purgatory = Purgatory()
    with pytest.raises(RuntimeError, match="no running event loop"):
        purgatory.start()
    assert "new" in repr(purgatory)


async def test_start_twice_is_refused_and_changes_nothing(purgatory: Purgatory) -> None:
    before = other_tasks()
    with pytest.raises(RuntimeError, match="open already"):
        purgatory.start()
    with pytest.raises(RuntimeError, match="open already"):
        await purgatory.run()
    assert other_tasks() == before
    assert await purgatory.try_complete_else_watch(Gate(0.001, "alive"), ["a"]) == "alive"


async def test_a_closed_purgatory_is_not_opened_again() -> None:
    purgatory = Purgatory()
    async with purgatory:
        pass
    with pytest.raises(PurgatoryClosed, match="make a new one"):
        purgatory.start()
    with pytest.raises(PurgatoryClosed, match="make a new one"):
        await purgatory.run()
    with pytest.raises(PurgatoryClosed, match="make a new one"):
        async with purgatory:
            pytest.fail("the block was entered")
    assert await refuses(purgatory)


async def test_closing_a_purgatory_that_was_never_opened_is_harmless() -> None:
    purgatory = Purgatory()
    await purgatory.aclose()
    await purgatory.aclose(cancel_pending=True)
    assert await refuses(purgatory)
    with pytest.raises(PurgatoryClosed):
        purgatory.start()


async def slow_to_close(many: int = 200, **options: Any) -> tuple[Purgatory, list[Gate]]:
    """A purgatory that closes in many slices of virtual time."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    purgatory = Purgatory(slice_seconds=0.001, **options)
    purgatory.start()
    slow = partial(loop.jump, 0.001)
    gates = [
        purgatory.try_complete_else_watch(Gate(60, completing=slow), [n % 7, "all"]) for n in range(many)
    ]
    await asyncio.sleep(0)
    return purgatory, gates


@pytest.mark.usefixtures("virtual_time")
async def test_the_pauses_of_closing_and_expiring_are_counted() -> None:
    purgatory, _ = await slow_to_close(20)
    await asyncio.sleep(61)
    slices = purgatory.statistics().slices
    assert 18 <= slices <= 20
    for number in range(20):
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        slow = partial(loop.jump, 0.001)
        purgatory.try_complete_else_watch(Gate(60, completing=slow), [number])
    await purgatory.aclose()
    assert 18 <= purgatory.statistics().slices - slices <= 20


@pytest.mark.usefixtures("virtual_time")
async def test_concurrent_closes_all_return_when_everything_is_done() -> None:
    purgatory, gates = await slow_to_close()

    async def close() -> bool:
        await purgatory.aclose()
        return all(gate.expired for gate in gates)

    assert await asyncio.gather(*[close() for _ in range(5)]) == [True] * 5
    assert nothing_is_left(purgatory)


@pytest.mark.usefixtures("virtual_time")
async def test_a_second_close_may_be_cancelled() -> None:
    purgatory, gates = await slow_to_close()
    first, second = asyncio.create_task(purgatory.aclose()), asyncio.create_task(purgatory.aclose())
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    assert second.cancelled()
    assert not first.done()
    await first
    assert all(gate.expired for gate in gates)


@pytest.mark.usefixtures("virtual_time")
async def test_a_second_close_returns_though_a_hook_ends_the_first_one_after_its_cancellation() -> None:
    purgatory, gates = await slow_to_close()
    gates[-1].completing = raising(Stop())
    first, second = asyncio.create_task(purgatory.aclose()), asyncio.create_task(purgatory.aclose())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first, second], timeout=5)
    with pytest.raises(Stop):
        await first
    assert second.done()
    assert all(gate.done for gate in gates)


async def test_an_operation_whose_first_try_closes_the_purgatory_expires() -> None:
    def close() -> None:
        # An eager task, too, runs the call until its first await at once.
        with pytest.raises(StopIteration):
            purgatory.aclose().send(None)

    purgatory = Purgatory()
    purgatory._open_on(asyncio.get_running_loop())
    gate = purgatory.try_complete_else_watch(Gate(trying=close), ["key"])
    assert gate.expired
    assert purgatory.statistics().pending == 0


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("cancel_pending", [False, True], ids=["expiring", "withdrawing"])
async def test_a_cancelled_close_of_a_large_purgatory_leaves_no_waiter_hanging(cancel_pending: bool) -> None:
    purgatory, gates = await slow_to_close()

    async def wait(gate: Gate) -> str:
        return await gate

    waits = [asyncio.create_task(wait(gate)) for gate in gates]
    await asyncio.sleep(0)
    closing = asyncio.create_task(purgatory.aclose(cancel_pending=cancel_pending))
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    assert closing.cancelled()
    await asyncio.gather(*waits, return_exceptions=True)
    ended = OperationState.CANCELLED if cancel_pending else OperationState.EXPIRED
    assert {gate.state for gate in gates} == {ended}
    assert nothing_is_left(purgatory)
    await purgatory.aclose()
    await asyncio.sleep(0)
    assert other_tasks() == set()


@pytest.mark.usefixtures("virtual_time")
async def test_a_close_finishes_when_its_anyio_scope_is_cancelled() -> None:
    async def beat() -> None:
        while not closed:
            beats.append(purgatory.statistics().pending)
            await asyncio.sleep(0)

    closed: list[bool] = []
    beats: list[int] = []
    purgatory, gates = await slow_to_close()
    beating = asyncio.create_task(beat())
    with anyio.CancelScope() as scope:
        scope.cancel()
        await purgatory.aclose()
        closed.append(all(gate.expired for gate in gates))
    assert closed == [True]
    await beating
    # It still works in slices, and not all at once.
    assert len(set(beats)) > 10
    assert nothing_is_left(purgatory)
    assert other_tasks() == set()


@pytest.mark.usefixtures("virtual_time")
async def test_operations_that_end_and_keys_that_are_removed_during_the_close_are_left_alone() -> None:
    purgatory, gates = await slow_to_close()
    closing = asyncio.create_task(purgatory.aclose())
    while not closing.done():
        await asyncio.sleep(0)
        left = [gate for gate in gates if not gate.done]
        for gate in left[:9]:
            gate.cancel()
        for gate in left[-9:]:
            gate.opened = True
        purgatory.check_and_complete("all")
    assert all(gate.done for gate in gates)
    assert all(gate.ran.count("on_complete") <= 1 for gate in gates)
    figures = purgatory.statistics()
    assert figures.expired + figures.cancelled + figures.completed == len(gates)
    assert min(figures.expired, figures.cancelled, figures.completed) > 0


async def test_the_first_base_exception_of_a_close_propagates_after_all_operations_have_ended() -> None:
    class Quiet(Stop):
        def __bool__(self) -> bool:
            return False

    errors = {3: Quiet("first"), 5: Stop("second")}
    purgatory = Purgatory()
    purgatory.start()
    gates = [
        purgatory.try_complete_else_watch(
            Gate(60, completing=raising(errors[n]) if n in errors else None), ["a", n]
        )
        for n in range(40)
    ]
    with pytest.raises(Stop) as caught:
        await purgatory.aclose()
    assert caught.value is errors[3]
    assert [gate.state for gate in gates].count(OperationState.EXPIRED) == 38
    assert nothing_is_left(purgatory)
    await purgatory.aclose()
    await asyncio.sleep(0)
    assert other_tasks() == set()


async def test_a_task_that_awaits_an_operation_may_close_the_purgatory(purgatory: Purgatory) -> None:
    async def wait_and_close() -> str:
        result = await purgatory.try_complete_else_watch(Gate(0.001, "done"), ["a"])
        await purgatory.aclose()
        return result

    other = purgatory.try_complete_else_watch(Gate(60), ["a"])
    assert await asyncio.create_task(wait_and_close()) == "done"
    assert other.expired


# Nothing is left behind


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("method", ["run", "aclose", "sweep", "wait_until", "await"])
async def test_a_cancelled_call_does_not_affect_the_next_call(method: str) -> None:
    def call(purgatory: Purgatory, gate: Gate) -> Awaitable[object]:
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "run": purgatory.run,
            "aclose": purgatory.aclose,
            "sweep": lambda: purgatory.sweep("a"),
            "wait_until": lambda: purgatory.wait_until(lambda: gate.done, ["a"]),
            "await": lambda: gate,
        }
        return calls[method]()

    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    slow = partial(loop.jump, 1)
    # Several rounds, because compiled code may reuse the memory of one call for the next.
    for cancelled in (True, False) * 3:
        purgatory = Purgatory()
        gate = Gate(60)
        if method != "run":
            purgatory.start()
            purgatory.try_complete_else_watch(gate, ["a"])
            for _ in range(5):
                purgatory.try_complete_else_watch(Gate(60, completing=slow), ["a"]).trying = slow
        task = asyncio.ensure_future(call(purgatory, gate))
        await asyncio.sleep(0)
        assert not task.done()
        if cancelled:
            task.cancel()
        elif method == "run":
            await purgatory.aclose()
        else:
            gate.force_complete()
            purgatory.check_and_complete("a")
        await asyncio.wait([task])
        assert task.cancelled() == cancelled
        assert cancelled or task.exception() is None
        await purgatory.aclose()


@pytest.mark.parametrize("use_uvloop", [False, True], ids=["asyncio", "uvloop"])
def test_a_purgatory_works_inside_anyio_run(use_uvloop: bool) -> None:
    async def main() -> tuple[str, str]:
        async with Purgatory() as purgatory:
            first = await purgatory.try_complete_else_watch(Gate(0.001, "block"), ["a"])
        structured = Purgatory()
        async with anyio.create_task_group() as group:
            await group.start(structured.run)
            second = await structured.try_complete_else_watch(Gate(0.001, "group"), ["a"])
            group.cancel_scope.cancel()
        return first, second

    if use_uvloop:
        pytest.importorskip("uvloop")
    assert anyio.run(main, backend_options={"use_uvloop": use_uvloop}) == ("block", "group")


def test_a_closed_purgatory_leaves_no_timer_and_no_task_behind() -> None:
    async def main() -> None:
        async with Purgatory() as purgatory:
            for timeout in (1, 60, 3600, None):
                purgatory.try_complete_else_watch(Gate(timeout), ["a", "b"])
            await asyncio.sleep(0)
            assert purgatory.timer.armed
        assert other_tasks() == set()
        before.append(asyncio.get_running_loop().time())
        await asyncio.get_running_loop().create_future()

    before: list[float] = []
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        with pytest.raises(WouldWaitForever):
            runner.run(main())
        # If a timer were left, virtual time would jump to it.
        assert runner.get_loop().time() == before[0]


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"tick": 0},
        {"tick": -1},
        {"tick": float("nan")},
        {"tick": float("inf")},
        {"wheel_size": 1},
        {"wheel_size": 0},
        {"wheel_size": -5},
        {"max_pending": 0},
        {"max_pending": -1},
        {"slice_seconds": 0},
        {"slice_seconds": -1},
        {"slice_seconds": float("nan")},
        {"slice_seconds": float("inf")},
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Purgatory(**options)


# What a hook may do while the purgatory closes


async def test_while_closing_a_hook_that_offers_gets_the_error_and_fails_its_operation(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    refused = Gate()
    handing_over = purgatory.try_complete_else_watch(
        Gate(completing=lambda: purgatory.try_complete_else_watch(refused, ["b"])), ["a"]
    )
    catching = purgatory.try_complete_else_watch(Gate(completing=lambda: caught(refused)), ["a"])

    def caught(gate: Gate) -> None:
        with pytest.raises(PurgatoryClosed):
            purgatory.try_complete_else_watch(gate, ["b"])

    await purgatory.aclose()
    assert handing_over.state is OperationState.FAILED
    await a_few_turns()
    assert [type(context["exception"]) for context in reported] == [PurgatoryClosed]
    assert catching.state is OperationState.EXPIRED
    assert refused.state is OperationState.NEW
    assert nothing_is_left(purgatory)


async def test_while_closing_a_check_of_a_hook_completes_whose_condition_holds(purgatory: Purgatory) -> None:
    def hand_over() -> None:
        following.opened = True
        assert purgatory.check_and_complete("following") == 0

    first = purgatory.try_complete_else_watch(Gate(completing=hand_over), ["first"])
    following = purgatory.try_complete_else_watch(Gate(), ["following"])
    waiting = purgatory.try_complete_else_watch(Gate(), ["following"])
    await purgatory.aclose()
    assert first.expired
    assert following.state is OperationState.COMPLETED
    assert waiting.expired
    assert nothing_is_left(purgatory)


async def test_while_closing_a_hook_may_end_other_operations_and_cannot_keep_them(
    purgatory: Purgatory,
) -> None:
    def end_others() -> None:
        assert completed.force_complete()
        assert withdrawn.cancel()
        assert renewed.reschedule(3600)

    first = purgatory.try_complete_else_watch(Gate(completing=end_others), ["a"])
    completed, withdrawn, renewed = (
        purgatory.try_complete_else_watch(Gate(60), [key]) for key in ("a", "b", "c")
    )
    await purgatory.aclose()
    assert first.expired
    assert completed.state is OperationState.COMPLETED
    assert withdrawn.state is OperationState.CANCELLED
    assert renewed.expired
    assert nothing_is_left(purgatory)


# How an operation ended


@pytest.mark.usefixtures("virtual_time")
async def test_an_operation_tells_its_timeout_from_closing() -> None:
    seen: list[tuple[str, bool]] = []

    def note(gate: Gate) -> Callable[[], None]:
        return lambda: seen.append((gate.name, gate.timed_out))

    async with Purgatory() as purgatory:
        gates = [Gate(timeout, name) for timeout, name in [(1, "timed out"), (60, "closed"), (0, "at once")]]
        for gate in gates:
            gate.completing = gate.expiring = note(gate)
            assert not gate.timed_out
            purgatory.try_complete_else_watch(gate, ["a"])
        completed = purgatory.try_complete_else_watch(Gate(1, opened=True), ["a"])
        withdrawn = purgatory.try_complete_else_watch(Gate(1), ["a"])
        withdrawn.cancel()
        await asyncio.sleep(2)
    assert [gate.timed_out for gate in gates] == [True, False, True]
    assert [gate.expired for gate in gates] == [True, True, True]
    assert (completed.timed_out, withdrawn.timed_out) == (False, False)
    assert seen == [(name, name != "closed") for name in ["at once"] * 2 + ["timed out"] * 2 + ["closed"] * 2]
