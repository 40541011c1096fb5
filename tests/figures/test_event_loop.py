"""What readers know of the oldest operation and of stalls, in the thread of the loop and in others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from purgatory import DelayedValue, Purgatory
from purgatory._figures.event_loop import (
    BLOCKED,
    LINGER,
    WINDOW,
    LoopSource,
    LoopSources,
    LoopStatistics,
)
from purgatory._figures.stall import PERIOD
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.operations import Gate

UNKNOWN = LoopStatistics()


class NoObserver:
    """It has a purgatory note when each operation is offered."""

    def operation_finished(self, *_: object) -> None: ...

    def key_checked(self, *_: object) -> None: ...


def observed(name: str = "polls") -> Purgatory:
    return Purgatory(name, observers=[NoObserver()])


# In the thread of the loop


async def test_the_age_is_of_the_oldest_operation_that_still_waits(virtual_time: VirtualTimeLoop) -> None:
    async with observed() as purgatory:
        source = LoopSource(purgatory, {})
        assert source.statistics().oldest_age == 0
        oldest = purgatory.try_complete_else_watch(Gate(100), ["a", "b"])
        await asyncio.sleep(5)
        purgatory.try_complete_else_watch(Gate(100), ["a"])
        purgatory.try_complete_else_watch(DelayedValue[int](100))
        await asyncio.sleep(3)
        assert source.statistics().oldest_age == pytest.approx(8)
        oldest.force_complete()
        assert source.statistics().oldest_age == pytest.approx(3)


async def test_the_age_is_unknown_while_all_operations_came_before_the_first_observer(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with Purgatory() as purgatory:
        purgatory.try_complete_else_watch(Gate(100), ["a"])
        purgatory.add_observer(NoObserver())
        source = LoopSource(purgatory, {})
        assert source.statistics().oldest_age is None
        await asyncio.sleep(1)
        purgatory.try_complete_else_watch(Gate(100), ["b"])
        await asyncio.sleep(2)
        assert source.statistics().oldest_age == pytest.approx(2)


async def test_a_stall_is_known_for_a_minute(virtual_time: VirtualTimeLoop) -> None:
    async with observed() as purgatory:
        source = LoopSource(purgatory, {})
        assert source.statistics().loop_stall == 0
        await asyncio.sleep(1)
        virtual_time._now += 0.7
        await asyncio.sleep(2)
        stall = source.statistics().loop_stall
        assert stall is not None
        assert 0.7 - PERIOD <= stall <= 0.7
        await asyncio.sleep(WINDOW)
        assert source.statistics().loop_stall == pytest.approx(0, abs=1e-9)


async def test_nothing_measures_the_loop_when_nobody_has_read_for_a_while(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with observed() as purgatory:
        LoopSource(purgatory, {}).statistics()
        await asyncio.sleep(LINGER - 1)
        assert virtual_time.idle_for() is not None
        await asyncio.sleep(1 + PERIOD)
        assert virtual_time.idle_for() is None


async def test_purgatories_of_one_loop_share_its_probe_and_closed_loops_lose_theirs() -> None:
    sources = LoopSources()

    async def read() -> None:
        async with observed("first") as first, observed("second") as second:
            sources.add_loop_of(first)
            sources.add_loop_of(second)
            assert all(values for _, values in sources.values())
            assert len(sources._probes) == 1

    with ThreadPoolExecutor(1) as pool:
        await asyncio.get_running_loop().run_in_executor(pool, lambda: asyncio.run(read()))
    await read()
    assert list(sources._probes) == [asyncio.get_running_loop()]


def test_nothing_is_known_of_a_purgatory_that_is_not_open(clock: ManualClock) -> None:
    assert LoopSource(Purgatory(), {}).statistics() == UNKNOWN


async def test_nothing_is_known_of_a_purgatory_that_is_closed() -> None:
    async with observed() as purgatory:
        pass
    assert LoopSource(purgatory, {}).statistics() == UNKNOWN


def test_a_manual_clock_has_ages_and_no_stalls(clock: ManualClock) -> None:
    purgatory = clock.purgatory(observers=[NoObserver()])
    purgatory.try_complete_else_watch(Gate(100), ["a"])
    clock.advance(4)
    assert LoopSource(purgatory, {}).statistics() == LoopStatistics(oldest_age=4, loop_stall=0)


# In other threads


async def in_another_thread(read: Callable[[], LoopStatistics]) -> LoopStatistics:
    return await asyncio.to_thread(read)


async def test_another_thread_has_the_answer_of_the_loop() -> None:
    async with observed() as purgatory:
        purgatory.try_complete_else_watch(Gate(100), ["a"])
        found = await in_another_thread(LoopSource(purgatory, {}).statistics)
    assert found.oldest_age is not None
    assert found.oldest_age >= 0
    assert found.loop_stall is not None


async def test_another_thread_does_not_wait_for_a_loop_that_it_knows_to_be_blocked() -> None:
    """It tells how long the stall lasts so far."""
    found: list[LoopStatistics] = []
    async with observed() as purgatory:
        source = LoopSource(purgatory, {})
        source.statistics()
        probe = source._probes[asyncio.get_running_loop()]
        probe._due -= 10
        thread = threading.Thread(target=lambda: found.append(source.statistics()))
        thread.start()
        # This blocks the loop until the thread has its answer.
        thread.join()
    assert found[0].oldest_age is None
    assert found[0].loop_stall is not None
    assert found[0].loop_stall > 10 - PERIOD > BLOCKED


async def test_another_thread_gives_up_on_a_loop_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("purgatory._figures.event_loop.PATIENCE", 0.01)
    found: list[LoopStatistics] = []
    async with observed() as purgatory:
        source = LoopSource(purgatory, {})
        thread = threading.Thread(target=lambda: found.append(source.statistics()))
        thread.start()
        thread.join()
        assert found == [UNKNOWN]
        # The late answer hurts nobody.
        await asyncio.sleep(0)


async def test_a_thread_with_a_loop_of_its_own_does_not_wait() -> None:
    async with observed() as purgatory:
        source = LoopSource(purgatory, {})

        async def read() -> LoopStatistics:
            return source.statistics()

        assert await in_another_thread(lambda: asyncio.run(read())) == UNKNOWN


def test_nothing_is_known_while_the_loop_does_not_run() -> None:
    loop = asyncio.new_event_loop()
    try:
        purgatory = observed()
        loop.run_until_complete(purgatory.__aenter__())
        assert LoopSource(purgatory, {}).statistics() == UNKNOWN
        loop.run_until_complete(purgatory.aclose())
    finally:
        loop.close()
