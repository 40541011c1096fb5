"""The slices of bulk work: what they wake counts, and they get their share of a busy loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise

import pytest

from purgatory import Purgatory
from purgatory.bulk import TURNS
from purgatory.errors import PurgatoryClosed
from purgatory.testing import VirtualTimeLoop
from tests.operations import Gate, a_few_turns

SLICE = 0.005
MANY = 400

pytestmark = pytest.mark.usefixtures("virtual_time")


def virtual_loop() -> VirtualTimeLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop


class Crowd:
    """Operations on one key, and for each a task that awaits it, and then works for some seconds."""

    def __init__(self, purgatory: Purgatory, many: int, *, ending: float, answering: float) -> None:
        self.purgatory = purgatory
        self.loop = virtual_loop()
        self.answering = answering
        # When each task had its answer.
        self.answered: list[float] = []
        # Called at each answer.
        self.answered_one: Callable[[], object] = int
        completing = partial(self.loop.jump, ending)
        gates = [Gate(60, opened=False, completing=completing) for _ in range(many)]
        self.tasks = [asyncio.create_task(self.wait(gate)) for gate in gates]
        self.gates = gates

    async def wait(self, gate: Gate) -> None:
        await self.purgatory.try_complete_else_watch(gate, ["key"])
        self.loop.jump(self.answering)
        self.answered.append(self.loop.time())
        self.answered_one()

    async def end(self, how: str) -> float:
        """Have all end in bulk work of this kind. Returns when that began, when all tasks have worked."""
        if how == "expiring":
            self.loop.jump(60)
        began = self.loop.time()
        if how == "closing":
            await self.purgatory.aclose()
        elif how == "sweeping":
            for gate in self.gates:
                gate.opened = True
            await self.purgatory.sweep("key")
        await asyncio.wait(self.tasks)
        return began


async def watched(turns: list[float], done: Callable[[], bool]) -> None:
    """Note the time of each turn of the loop until `done`."""
    while not done():
        turns.append(virtual_loop().time())
        await asyncio.sleep(0)
    turns.append(virtual_loop().time())


async def busy(seconds: float, done: Callable[[], bool]) -> int:
    """Hold the loop for so many seconds in each turn. Returns the number of the turns."""
    turns = 0
    while not done():
        virtual_loop().jump(seconds)
        turns += 1
        await asyncio.sleep(0)
    return turns


@pytest.mark.parametrize("how", ["expiring", "sweeping", "closing"])
async def test_the_work_of_the_tasks_that_a_slice_wakes_counts_as_part_of_the_slice(how: str) -> None:
    async with Purgatory(slice_seconds=SLICE) as purgatory:
        crowd = Crowd(purgatory, MANY, ending=0.000_05, answering=0.001)
        await a_few_turns()
        turns: list[float] = []
        watching = asyncio.create_task(watched(turns, lambda: len(crowd.answered) == MANY))
        await crowd.end(how)
        await watching
        stalls = sorted(after - before for before, after in pairwise(turns) if after - before < 59)
        # The first slice does not know what it wakes.
        assert stalls[-2] <= 1.5 * SLICE
        assert stalls[-1] <= 2 * SLICE


@pytest.mark.parametrize("how", ["expiring", "sweeping", "closing"])
@pytest.mark.parametrize("held", [0.002, 0.02, 0.1])
async def test_bulk_work_gets_half_of_a_loop_that_others_keep_busy(how: str, held: float) -> None:
    async with Purgatory(slice_seconds=SLICE) as purgatory:
        crowd = Crowd(purgatory, MANY, ending=0.001, answering=0.002)
        await a_few_turns()
        others = asyncio.create_task(busy(held, lambda: len(crowd.answered) == MANY))
        await crowd.end(how)
        own = MANY * 0.003
        # Those of the first pause come on top, which are taken for what the first slice has woken, and those
        # of the last one, because the last slice ends early. So do two turns in which all begins and ends.
        assert await others * held <= own + (2 * TURNS + 2) * held


@pytest.mark.parametrize("many", [500, 2000])
@pytest.mark.parametrize("asking", [0.000_05, 0.001])
async def test_those_who_wait_are_answered_before_nearly_all_who_ask_again(many: int, asking: float) -> None:
    async with Purgatory(slice_seconds=SLICE) as purgatory:
        loop = virtual_loop()

        def ask() -> None:
            loop.jump(asking)
            # The last ones ask when it is closed.
            with suppress(PurgatoryClosed):
                purgatory.try_complete_else_watch(Gate(60), ["key"])

        crowd = Crowd(purgatory, many, ending=0.000_01, answering=0.000_1)
        # The request comes by the network, and is not in the loop's queue before.
        crowd.answered_one = lambda: loop.call_later(0.000_5, ask)
        await a_few_turns()
        began = await crowd.end("sweeping")
        burst = many * 0.000_11
        # Those of the first two slices ask again before the others are answered.
        early = 2 * SLICE / 0.000_1
        assert max(crowd.answered) - began <= 1.05 * burst + early * asking


@pytest.mark.parametrize("answering", [0.0, 0.001])
async def test_newcomers_do_not_make_the_slices_of_expiring_longer(answering: float) -> None:
    """As with requests whose timeouts expire while others come."""
    async with Purgatory(slice_seconds=SLICE) as purgatory:
        crowd = Crowd(purgatory, MANY, ending=0.000_05, answering=answering)
        await a_few_turns()
        virtual_loop().jump(60)
        turns: list[float] = []
        watching = asyncio.create_task(watched(turns, lambda: len(crowd.answered) == MANY))
        while not watching.done():
            purgatory.try_complete_else_watch(Gate(60), ["key"])
            await asyncio.sleep(0)
        assert max(after - before for before, after in pairwise(turns)) <= 2 * SLICE


async def test_however_long_others_hold_the_loop_a_slice_has_an_end() -> None:
    async with Purgatory(slice_seconds=SLICE) as purgatory:
        crowd = Crowd(purgatory, MANY, ending=0.01, answering=0)
        await a_few_turns()
        others = asyncio.create_task(busy(2.0, lambda: len(crowd.answered) == MANY))
        await crowd.end("sweeping")
        # Four seconds of work, in slices of one second, though each pause takes six.
        assert await others >= 4 * TURNS


@pytest.mark.parametrize("how", ["expiring", "sweeping", "closing"])
async def test_a_slice_that_takes_no_time_at_all_is_followed_by_others(how: str) -> None:
    async with Purgatory(slice_seconds=1e-300) as purgatory:
        crowd = Crowd(purgatory, 3, ending=0, answering=0)
        await a_few_turns()
        virtual_loop().jump(1)
        await crowd.end(how)
        assert len(crowd.answered) == 3
