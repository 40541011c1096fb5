"""Sessions: renewed, they stay; unheard of, they expire, once and at their time."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.constructs import RENEWABLE, TIMERS, TimerConstruct
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.constructs.recording import RecordingTally


@pytest.fixture(params=[construct for construct in RENEWABLE if construct not in TIMERS])
def construct_type(request: pytest.FixtureRequest) -> type[TimerConstruct]:
    chosen: type[TimerConstruct] = request.param
    return chosen


async def test_what_is_not_renewed_any_more_expires_then(
    construct_type: type[TimerConstruct], virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    async with construct_type(tally) as sessions:
        sessions.add([0.5] * 100)
        for beat in range(10):
            await asyncio.sleep(0.4)
            sessions.renew(range(beat * 10, 100), 0.5)
        await asyncio.sleep(1.0)
        assert sessions.wakeups > 0
    assert tally.times == {
        number: [pytest.approx(0.9 + 0.4 * (number // 10), abs=0.0011)] for number in range(100)
    }


async def test_what_is_cancelled_or_left_at_the_end_does_not_expire(
    construct_type: type[TimerConstruct], virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    tasks = asyncio.all_tasks()
    async with construct_type(tally) as sessions:
        sessions.add([0.5, 0.5, 60.0])
        await asyncio.sleep(0.1)
        sessions.cancel([0])
        await asyncio.sleep(1.0)
    await asyncio.sleep(100.0)
    assert list(tally.times) == [1]
    assert asyncio.all_tasks() == tasks
