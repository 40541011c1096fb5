"""Every timer that is compared: each timeout expires once, at its time, unless it is cancelled or renewed."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.designs.timers import TimerAlternative
from benchmarks.suites.timers import RENEWED, TIMERS
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.waits.recording import RecordingTally


def at(seconds: float) -> object:
    """Once, at that time or up to a millisecond later; or earlier, with Kafka's."""
    return [pytest.approx(seconds, abs=0.0011)]


@pytest.mark.parametrize("alternative_type", TIMERS)
async def test_each_timeout_expires_once_unless_it_is_cancelled(
    alternative_type: type[TimerAlternative], virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    async with alternative_type(tally) as timers:
        await asyncio.sleep(0.0123)
        timers.add_all([0.01 * number for number in range(1, 501)])
        timers.cancel_all(range(0, 500, 2))
        # Numbers go on.
        timers.add_all([1.0, -1.0])
        await asyncio.sleep(10.0)
        assert timers.wakeups > 0
    expected = {number: at(0.0123 + 0.01 * (number + 1)) for number in range(1, 500, 2)}
    assert tally.times == {**expected, 500: at(1.0123), 501: at(0.0123)}
    await asyncio.sleep(0)
    assert virtual_time.idle_for() is None


@pytest.mark.parametrize("alternative_type", RENEWED)
async def test_a_renewed_timeout_counts_from_then_and_what_is_left_at_the_end_does_not_expire(
    alternative_type: type[TimerAlternative], virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    tasks = asyncio.all_tasks()
    async with alternative_type(tally) as sessions:
        sessions.add_all([0.5] * 100 + [60.0, 0.5])
        await asyncio.sleep(0)
        sessions.cancel_all([101])
        for beat in range(10):
            await asyncio.sleep(0.4)
            sessions.renew_all(range(beat * 10, 100), 0.5)
        await asyncio.sleep(1.0)
    await asyncio.sleep(100.0)
    assert tally.times == {number: at(0.9 + 0.4 * (number // 10)) for number in range(100)}
    assert asyncio.all_tasks() == tasks
