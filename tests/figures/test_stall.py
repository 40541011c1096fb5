"""The measured delays of the event loop."""

from __future__ import annotations

import asyncio
from typing import Final

from purgatory._figures.stall import PERIOD, StallProbe
from purgatory.testing import VirtualTimeLoop

LINGER: Final = 10.0


async def test_a_loop_that_is_never_blocked_is_never_late(virtual_time: VirtualTimeLoop) -> None:
    probe = StallProbe(5, LINGER)
    probe.look(virtual_time.time())
    await asyncio.sleep(3)
    worst = probe.worst(virtual_time.time())
    assert worst[:2] == [None, None]
    assert all(late is not None and late < 1e-9 for late in worst[2:])


async def test_each_second_has_its_longest_stall_to_within_a_period(
    virtual_time: VirtualTimeLoop,
) -> None:
    def stall(seconds: float) -> None:
        virtual_time._now += seconds

    probe = StallProbe(3, LINGER)
    probe.look(virtual_time.time())
    for at, seconds in {0.105: 0.05, 0.505: 0.3, 1.205: 0.1}.items():
        virtual_time.call_at(at, stall, seconds)
    await asyncio.sleep(3)
    first, second, third = (late or 0.0 for late in probe.worst(3.0))
    assert 0.3 - PERIOD <= first <= 0.3
    assert 0.1 - PERIOD <= second <= 0.1
    assert third < 1e-9


async def test_a_probe_goes_on_while_somebody_looks_now_and_then_and_leaves_no_timer(
    virtual_time: VirtualTimeLoop,
) -> None:
    probe = StallProbe(60, LINGER)
    for _ in range(3):
        probe.look(virtual_time.time())
        await asyncio.sleep(LINGER - 1)
    await asyncio.sleep(2)
    assert virtual_time.idle_for() is None
    measured = [late is not None for late in probe.worst(virtual_time.time())]
    assert measured.count(True) == 3 * (LINGER - 1) + 1
    await asyncio.sleep(5)
    probe.look(virtual_time.time())
    await asyncio.sleep(2)
    assert probe.worst(virtual_time.time())[-1] is not None
