"""Kafka's present timer: its levels, its buckets, and its known faults."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.designs.alternative import Tally
from benchmarks.designs.kafka_today import SystemTimer, TimerTaskEntry, TimingWheel
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.designs.recorded import Recorded


class Wheel:
    """A wheel of 20 slots, and its delay queue."""

    def __init__(self, start: int = 0) -> None:
        self.timer = SystemTimer(Tally())
        self.wheel = TimingWheel(1, 20, start, self.timer)

    def add(self, expiration: int) -> bool:
        return self.wheel.add(TimerTaskEntry(None, expiration))

    @property
    def due(self) -> list[int]:
        """When its buckets are due."""
        return sorted(expiration for expiration, _, _ in self.timer.queue)


@pytest.mark.parametrize(
    ("now", "expiration", "due"),
    [
        # The first level, whose slots are used again as it turns.
        (0, 2, 2),
        (2, 21, 21),
        # The second, where a slot is 20 ms wide; and the third, where it is 400.
        (0, 350, 340),
        (0, 450, 400),
        (0, 8_000, 8_000),
        (0, 30_000, 24_000),
        # Levels count in whole steps of their own from zero.
        (1_234, 1_260, 1_260),
        (1_234, 1_640, 1_600),
    ],
)
async def test_an_entry_goes_to_the_bucket_that_is_due_at_the_start_of_its_slot(
    now: int, expiration: int, due: int
) -> None:
    wheel = Wheel(now)
    assert wheel.add(expiration)
    assert (wheel.due, wheel.timer.tasks) == ([due], 1)


async def test_an_entry_that_is_already_due_is_refused() -> None:
    wheel = Wheel(100)
    assert not wheel.add(100)
    assert not wheel.add(99)
    assert (wheel.due, wheel.timer.tasks) == ([], 0)


async def test_an_entry_comes_down_a_level_at_a_time_with_a_wake_up_each(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with SystemTimer(Tally()) as timer:
        entry = Recorded(virtual_time)
        timer.add(entry, 0.457)
        await asyncio.sleep(1.0)
        assert entry.expired_at == [pytest.approx(0.457)]
        # At 400, 440 and 457 ms.
        assert timer.wakeups == 3


async def test_it_fires_up_to_a_millisecond_early(virtual_time: VirtualTimeLoop) -> None:
    async with SystemTimer(Tally()) as timer:
        await asyncio.sleep(0.0109)
        entry = Recorded(virtual_time)
        timer.add(entry, 0.005)
        await asyncio.sleep(1.0)
        assert entry.expired_at == [pytest.approx(0.015)]


async def test_an_emptied_bucket_still_wakes_the_timer(virtual_time: VirtualTimeLoop) -> None:
    async with SystemTimer(Tally()) as timer:
        entries = [Recorded(virtual_time) for _ in range(10)]
        for number, entry in enumerate(entries, 1):
            timer.add(entry, number / 1000)
        for entry in entries:
            timer.cancel(entry)
        assert len(timer) == 0
        await asyncio.sleep(1.0)
        assert timer.wakeups == 10
