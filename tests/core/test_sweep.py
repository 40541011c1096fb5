"""`sweep` checks a key with thousands of watchers, and pauses between slices."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from functools import partial
from typing import Any

import pytest

from purgatory import DelayedOperation, OperationState, Purgatory
from purgatory.observer import Observer, Timing
from purgatory.testing import VirtualTimeLoop
from tests.operations import Gate, Stop, a_few_turns, raising


class Checks(Observer):
    """An observer that records the checks."""

    def __init__(self) -> None:
        self.told: list[tuple[Hashable, int, int]] = []

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        self.told.append((key, tried, completed))

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        """These tests do not need it."""


def virtual_loop() -> VirtualTimeLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop


def park(purgatory: Purgatory, many: int, *, opened: bool = True, seconds: float = 0.001) -> list[Gate]:
    """Park `many` operations on one key, each of which takes `seconds` for a try."""
    gates = [purgatory.try_complete_else_watch(Gate(), ["key", n]) for n in range(many)]
    for gate in gates:
        gate.trying = partial(virtual_loop().jump, seconds)
        gate.opened = opened
    return gates


async def test_a_sweep_completes_the_operations_whose_condition_holds_and_counts_them(
    purgatory: Purgatory,
) -> None:
    gates = [purgatory.try_complete_else_watch(Gate(), ["key"]) for _ in range(100)]
    for gate in gates[::3]:
        gate.opened = True
    assert await purgatory.sweep("key") == 34
    assert [gate.done for gate in gates] == [n % 3 == 0 for n in range(100)]
    assert await purgatory.sweep("key") == 0
    assert await purgatory.sweep("nobody watches") == 0


async def test_an_unhashable_key_cannot_be_swept(purgatory: Purgatory) -> None:
    with pytest.raises(TypeError):
        await purgatory.sweep([])  # type: ignore[arg-type]


async def test_a_small_key_is_swept_without_a_pause(purgatory: Purgatory) -> None:
    purgatory.try_complete_else_watch(Gate(), ["key"])
    sweep = purgatory.sweep("key")
    with pytest.raises(StopIteration) as caught:
        sweep.send(None)
    assert caught.value.value == 0


@pytest.mark.usefixtures("virtual_time")
async def test_a_sweep_pauses_when_a_slice_is_over() -> None:
    async with Purgatory(slice_seconds=0.01) as purgatory:
        park(purgatory, 100)
        sweep = asyncio.create_task(purgatory.sweep("key"))
        done_at: list[int] = []
        while not sweep.done():
            await asyncio.sleep(0)
            done_at.append(purgatory.statistics().completed)
        assert sweep.result() == 100
        stops = sorted(set(done_at))
        assert len(stops) >= 5
        assert len(stops) - 1 <= purgatory.statistics().slices <= len(stops)
        assert all(later - earlier < 40 for earlier, later in zip([0, *stops], stops, strict=False))


@pytest.mark.usefixtures("virtual_time")
async def test_operations_added_during_a_sweep_are_not_visited() -> None:
    async with Purgatory(slice_seconds=0.005) as purgatory:
        gates = park(purgatory, 100)
        sweep = asyncio.create_task(purgatory.sweep("key"))
        added: list[Gate] = []
        while not sweep.done():
            await asyncio.sleep(0)
            added.append(purgatory.try_complete_else_watch(Gate(), ["key"]))
            added[-1].opened = True
        assert sweep.result() == 100
        assert all(gate.done for gate in gates)
        assert len(added) > 5
        assert {tuple(gate.ran) for gate in added} == {("try_complete",)}


@pytest.mark.usefixtures("virtual_time")
async def test_operations_added_by_hooks_of_a_sweep_are_not_visited() -> None:
    async with Purgatory(slice_seconds=0.005) as purgatory:
        added: list[Gate] = []

        def add() -> None:
            virtual_loop().jump(0.001)
            added.append(purgatory.try_complete_else_watch(Gate(), ["key"]))
            added[-1].opened = True

        for gate in park(purgatory, 50):
            gate.trying = add
        assert await purgatory.sweep("key") == 50
        assert [gate.ran for gate in added] == [["try_complete"]] * 50
        assert purgatory.operations("key") == added


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("where", ["ahead", "behind", "everywhere", "all"])
async def test_operations_may_leave_the_key_between_slices(where: str) -> None:
    async with Purgatory(slice_seconds=0.005) as purgatory:
        gates = park(purgatory, 200, opened=False)
        for gate in gates[::2]:
            gate.opened = True
        sweep = asyncio.create_task(purgatory.sweep("key"))
        while not sweep.done():
            await asyncio.sleep(0)
            left = purgatory.operations("key")
            if where == "ahead":
                withdrawn = left[-7:]
            elif where == "behind":
                withdrawn = left[:7]
            elif where == "everywhere":
                withdrawn = left[::11]
            else:
                withdrawn = left
            for operation in withdrawn:
                operation.cancel()
        assert sweep.result() == purgatory.statistics().completed
        assert all(gate.done for gate in gates[::2])
        # Each was tried when it was offered, and at most once by the sweep.
        assert {gate.ran.count("try_complete") for gate in gates} <= {1, 2}
        untouched = [gate for gate in gates[1::2] if not gate.done]
        assert all(gate.ran.count("try_complete") == 2 for gate in untouched)
        figures = purgatory.statistics()
        assert figures.completed + figures.cancelled + figures.pending == 200


@pytest.mark.usefixtures("virtual_time")
async def test_operations_that_replace_all_others_during_a_pause_are_not_visited() -> None:
    async with Purgatory(slice_seconds=0.005) as purgatory:
        gates = park(purgatory, 60, opened=False)
        sweep = asyncio.create_task(purgatory.sweep("key"))
        await asyncio.sleep(0)
        assert not sweep.done()
        purgatory.cancel_for_key("key")
        assert purgatory.operations("key") == []
        newcomers = park(purgatory, 60)
        assert await sweep == 0
        assert {gate.state for gate in gates} == {OperationState.CANCELLED}
        assert {tuple(gate.ran) for gate in newcomers} == {("try_complete",)}


@pytest.mark.usefixtures("virtual_time")
async def test_a_sweep_ends_when_only_operations_are_left_that_came_after_it() -> None:
    async with Purgatory(slice_seconds=0.005) as purgatory:
        gates = park(purgatory, 10, opened=False)
        sweep = asyncio.create_task(purgatory.sweep("key"))
        await asyncio.sleep(0)
        assert not sweep.done()
        # Some of them are in the first chunk of the watch list.
        newcomers = park(purgatory, 40)
        for gate in gates:
            gate.cancel()
        assert await sweep == 0
        assert {tuple(gate.ran) for gate in newcomers} == {("try_complete",)}


@pytest.mark.usefixtures("virtual_time")
async def test_the_rest_of_a_cancelled_sweep_is_checked_in_the_next_turn() -> None:
    checks = Checks()
    async with Purgatory(slice_seconds=0.005, observers=[checks]) as purgatory:
        gates = park(purgatory, 100)
        sweep = asyncio.create_task(purgatory.sweep("key"))
        await asyncio.sleep(0)
        done = purgatory.statistics().completed
        assert 0 < done < 100
        sweep.cancel()
        await asyncio.wait([sweep])
        await a_few_turns()
        assert sweep.cancelled()
        assert all(gate.done for gate in gates)
    assert checks.told == [("key", done, done), ("key", 100 - done, 100 - done)]


@pytest.mark.usefixtures("virtual_time")
async def test_a_sweep_may_be_cancelled_when_the_purgatory_has_closed() -> None:
    purgatory = Purgatory(slice_seconds=0.005)
    purgatory.start()
    park(purgatory, 100)
    sweep = asyncio.create_task(purgatory.sweep("key"))
    await asyncio.sleep(0)
    sweep.cancel()
    await purgatory.aclose()
    await asyncio.wait([sweep])
    assert sweep.cancelled()
    assert purgatory.statistics().pending == 0


@pytest.mark.usefixtures("virtual_time")
async def test_the_purgatory_may_close_while_a_sweep_pauses() -> None:
    purgatory = Purgatory(slice_seconds=0.005)
    purgatory.start()
    gates = park(purgatory, 100)
    sweep = asyncio.create_task(purgatory.sweep("key"))
    await asyncio.sleep(0)
    await purgatory.aclose()
    figures = purgatory.statistics()
    assert await sweep == figures.completed
    assert figures.completed + figures.expired == 100
    assert all(gate.ran.count("on_complete") == 1 for gate in gates)


@pytest.mark.usefixtures("virtual_time")
async def test_two_sweeps_of_one_key_complete_each_operation_once() -> None:
    async with Purgatory(slice_seconds=0.005) as purgatory:
        gates = park(purgatory, 100)
        assert sum(await asyncio.gather(purgatory.sweep("key"), purgatory.sweep("key"))) == 100
        assert all(gate.ran.count("on_complete") == 1 for gate in gates)


async def test_checks_made_by_hooks_of_a_sweep_run_and_are_counted(purgatory: Purgatory) -> None:
    def light(key: str) -> None:
        others[key].opened = True
        assert purgatory.check_and_complete(key) == 0

    others = {key: purgatory.try_complete_else_watch(Gate(), [key]) for key in ("x", "y")}
    for key in others:
        gate = purgatory.try_complete_else_watch(Gate(completing=partial(light, key)), ["key"])
        gate.opened = True
    assert await purgatory.sweep("key") == 4


@pytest.mark.usefixtures("virtual_time")
async def test_the_rest_of_a_sweep_is_checked_when_a_check_made_by_its_hooks_raises() -> None:
    async with Purgatory(slice_seconds=0.005) as purgatory:
        gates = park(purgatory, 100)
        other = purgatory.try_complete_else_watch(Gate(), ["other"])
        other.trying = raising(Stop())
        gates[0].completing = partial(purgatory.check_and_complete, "other")
        with pytest.raises(Stop):
            await purgatory.sweep("key")
        assert 0 < purgatory.statistics().completed < 100
        await a_few_turns()
        assert all(gate.done for gate in gates)


@pytest.mark.usefixtures("virtual_time")
async def test_the_close_expires_the_rest_of_a_sweep_that_is_cancelled_meanwhile() -> None:
    purgatory = Purgatory(slice_seconds=0.005)
    purgatory.start()
    gates = park(purgatory, 100)
    for gate in gates:
        gate.completing = partial(virtual_loop().jump, 0.001)
    sweep = asyncio.create_task(purgatory.sweep("key"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(purgatory.aclose())
    await asyncio.sleep(0)
    completed = purgatory.statistics().completed
    assert 0 < completed < 100
    sweep.cancel()
    await asyncio.wait([sweep, closing])
    figures = purgatory.statistics()
    assert (figures.completed, figures.expired) == (completed, 100 - completed)


async def test_a_sweep_made_in_a_hook_is_left_to_the_outermost_call(purgatory: Purgatory) -> None:
    def sweep() -> None:
        # An eager task, too, runs the call until its first await at once.
        with pytest.raises(StopIteration) as ended:
            purgatory.sweep("key").send(None)
        swept.append(ended.value.value)
        assert not any(gate.done for gate in gates)

    swept: list[int] = []
    gates = [purgatory.try_complete_else_watch(Gate(), ["key"]) for _ in range(10)]
    for gate in gates:
        gate.opened = True
    outer = purgatory.try_complete_else_watch(Gate(completing=sweep), ["outer"])
    outer.force_complete()
    assert swept == [0]
    assert all(gate.done for gate in gates)
