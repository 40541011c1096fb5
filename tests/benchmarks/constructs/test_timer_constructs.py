"""Every timer that is compared: each timeout expires once, at its time, unless it is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.constructs.timer_construct import TimerConstruct
from benchmarks.constructs.timers import TIMERS, CoreTimer
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.constructs.recording import RecordingTally


@pytest.fixture(params=TIMERS, ids=lambda construct: construct.name)
def construct_type(request: pytest.FixtureRequest) -> type[TimerConstruct]:
    chosen: type[TimerConstruct] = request.param
    return chosen


def at(seconds: float) -> object:
    """Once, then or up to a millisecond later; or earlier, with Kafka's."""
    return [pytest.approx(seconds, abs=0.0011)]


async def test_each_timeout_expires_once_unless_it_is_cancelled(
    construct_type: type[TimerConstruct], virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    async with construct_type(tally) as timers:
        await asyncio.sleep(0.0123)
        timers.add([0.01 * number for number in range(1, 501)])
        timers.cancel(range(0, 500, 2))
        # Numbers go on.
        timers.add([1.0])
        await asyncio.sleep(10.0)
    assert tally.times == {
        **{number: at(0.0123 + 0.01 * (number + 1)) for number in range(1, 500, 2)},
        500: at(1.0123),
    }


async def test_a_renewed_timeout_counts_from_then(
    construct_type: type[TimerConstruct], virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    async with construct_type(tally) as timers:
        timers.add([0.5] * 100)
        for beat in range(10):
            await asyncio.sleep(0.4)
            timers.renew(range(beat * 10, 100), 0.5)
        await asyncio.sleep(1.0)
    assert tally.times == {number: at(0.9 + 0.4 * (number // 10)) for number in range(100)}


async def test_what_is_due_already_expires_at_once(
    construct_type: type[TimerConstruct], virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    async with construct_type(tally) as timers:
        timers.add([0.0, -1.0])
        await asyncio.sleep(0.01)
    assert tally.times == {0: at(0.0), 1: at(0.0)}


async def test_nothing_is_armed_in_the_end_and_nothing_runs(
    construct_type: type[TimerConstruct], virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    tasks = asyncio.all_tasks()
    async with construct_type(tally) as timers:
        timers.add([0.5, 10.0, 20.0])
        await asyncio.sleep(1.0)
        assert timers.wakeups > 0
    await asyncio.sleep(0)
    assert virtual_time.idle_for() is None
    assert asyncio.all_tasks() == tasks
    assert tally.times == {0: at(0.5)}


def test_the_core_comes_first_and_names_are_different_and_short() -> None:
    names = [construct.name for construct in TIMERS]
    assert TIMERS[0] is CoreTimer
    assert len(set(names)) == len(names)
    assert all(len(name) <= 26 for name in names)


async def test_it_works_on_a_real_loop(construct_type: type[TimerConstruct]) -> None:
    tally = RecordingTally()
    async with construct_type(tally) as timers:
        timers.add([0.001 + number / 1e5 for number in range(1_000)])
        timers.cancel(range(500, 1_000))
        timers.renew(range(400, 500), 0.02)
        await tally.until_expired(500)
    assert all(len(times) == 1 for times in tally.times.values())
    assert set(tally.times) == set(range(500))
