"""The ticker wheel's two faults: it wakes for nothing, and looks at what is rounds away."""

from __future__ import annotations

import asyncio

from benchmarks.designs.ticker_wheel import TickerWheel
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.designs.recorded import Recorded


async def test_it_wakes_at_every_tick_with_nothing_in_it(virtual_time: VirtualTimeLoop) -> None:
    with TickerWheel(virtual_time) as wheel:
        await asyncio.sleep(1.0005)
        assert wheel.wakeups == wheel.idle_wakeups == 1000
        assert wheel.visited == 0


async def test_it_wakes_at_every_tick_until_the_only_entry_is_due(virtual_time: VirtualTimeLoop) -> None:
    with TickerWheel(virtual_time) as wheel:
        wheel.add(Recorded(virtual_time), 1.0)
        await asyncio.sleep(1.0005)
        assert (wheel.wakeups, wheel.idle_wakeups) == (1000, 999)


async def test_a_slot_is_looked_at_in_every_round_however_far_away_its_entries_are(
    virtual_time: VirtualTimeLoop,
) -> None:
    with TickerWheel(virtual_time, wheel_size=10) as wheel:
        for _ in range(50):
            wheel.add(Recorded(virtual_time), 1.0)
        await asyncio.sleep(0.9955)
        assert (len(wheel), wheel.visited) == (50, 50 * 99)
        # None of them was due.
        assert wheel.idle_wakeups == wheel.wakeups
        await asyncio.sleep(0.01)
        assert (len(wheel), wheel.visited) == (0, 50 * 100)


async def test_a_cancelled_entry_is_gone_at_once(virtual_time: VirtualTimeLoop) -> None:
    with TickerWheel(virtual_time, wheel_size=10) as wheel:
        entry = Recorded(virtual_time)
        wheel.add(entry, 0.5)
        wheel.cancel(entry)
        await asyncio.sleep(1.0)
        assert wheel.visited == 0


async def test_ticks_that_were_missed_are_made_up_for_in_one_wake_up(virtual_time: VirtualTimeLoop) -> None:
    log: list[Recorded] = []
    with TickerWheel(virtual_time, wheel_size=10) as wheel:
        late, soon = Recorded(virtual_time, log), Recorded(virtual_time, log)
        wheel.add(late, 0.035)
        wheel.add(soon, 0.025)
        virtual_time.jump(1.0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert log == [soon, late]
        assert wheel.wakeups == 1
