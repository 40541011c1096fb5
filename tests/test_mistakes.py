"""Mistakes of the program that uses the library: each ends in an error that names the cause and the mend."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from purgatory import OperationState, Purgatory, PurgatoryFull
from purgatory.testing import ManualClock
from tests.operations import Gate

# Awaiting what nobody would wake


async def test_awaiting_an_operation_that_was_never_offered_raises(purgatory: Purgatory) -> None:
    gate = Gate(60)
    with pytest.raises(RuntimeError, match="offer it before you await it"):
        await gate
    assert gate.state is OperationState.NEW
    # Nothing is left of the attempt.
    purgatory.try_complete_else_watch(gate, ["a"]).force_complete()
    assert await gate == "gate"


async def test_awaiting_an_operation_that_was_refused_raises() -> None:
    async with Purgatory(max_pending=1) as purgatory:
        purgatory.try_complete_else_watch(Gate(), ["a"])
        refused = Gate()
        with pytest.raises(PurgatoryFull):
            purgatory.try_complete_else_watch(refused, ["a"])
        with pytest.raises(RuntimeError, match="offer it before you await it"):
            await refused


def test_awaiting_an_operation_in_another_event_loop_raises() -> None:
    async def offer() -> Gate:
        purgatory.start()
        return purgatory.try_complete_else_watch(Gate(60), ["a"])

    async def wait() -> None:
        with pytest.raises(RuntimeError, match="the purgatory of another event loop"):
            await gate

    purgatory = Purgatory()
    with asyncio.Runner() as runner, asyncio.Runner() as other:
        gate = runner.run(offer())
        other.run(wait())
        assert gate.state is OperationState.PENDING
        runner.run(purgatory.aclose())


async def test_an_operation_that_is_done_can_be_awaited_in_any_event_loop_and_without_an_offer() -> None:
    async def offer() -> Gate:
        async with Purgatory() as purgatory:
            return purgatory.try_complete_else_watch(Gate(60), ["a"])

    assert await (await asyncio.to_thread(asyncio.run, offer())) == "gate"
    never_offered = Gate()
    never_offered.force_complete()
    assert await never_offered == "gate"


async def test_a_task_of_any_event_loop_may_await_an_operation_of_a_manual_clock() -> None:
    async def wait() -> str:
        return await gate

    clock = ManualClock()
    gate = clock.purgatory().try_complete_else_watch(Gate(60), ["a"])
    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    clock.advance(60)
    assert await waiting == "gate"


async def test_a_hook_of_an_operation_without_a_purgatory_may_begin_to_await_it() -> None:
    def begin() -> None:
        awaiting = gate.__await__()
        next(awaiting)
        waits.append(awaiting)

    waits: list[Generator[Any, None, str]] = []
    gate = Gate(completing=begin)
    gate.force_complete()
    with pytest.raises(StopIteration, match="gate"):
        next(waits[0])
