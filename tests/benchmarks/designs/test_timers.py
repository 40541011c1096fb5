"""The contract of every timer that is compared, in random histories and by example."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.designs.kafka_today import SystemTimer
from benchmarks.designs.timers import TimerAlternative
from benchmarks.suites.timers import RENEWED
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.designs.recording import RecordingTally

# All fire at whole milliseconds, or at their time.
RESOLUTION = 0.001
# The sums of a few hundred floats.
ROUNDING = 1e-7

# Tenths of milliseconds to let pass; an action; and, also in tenths, the delay of a timeout to add or the
# time to hold the loop, or the number of the timeout to cancel or renew. Small numbers, so that deadlines
# meet; and the edges of Kafka's levels.
Step: TypeAlias = tuple[int, str, int]
DELAYS = st.one_of(
    st.integers(1, 50), st.sampled_from([199, 200, 201, 3990, 4000, 4010]), st.integers(1, 9_000)
)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.integers(0, 30), st.just("add"), DELAYS),
    st.tuples(st.integers(0, 30), st.sampled_from(["cancel", "renew"]), st.integers(1, 40)),
    st.tuples(st.integers(0, 5_000), st.just("hold"), DELAYS),
)

each_timer = pytest.mark.parametrize("alternative_type", RENEWED)


@each_timer
@settings(max_examples=30)
@given(steps=st.lists(STEPS, min_size=1, max_size=40))
def test_timeouts_expire_once_in_order_not_early_and_never_after_they_are_cancelled(
    alternative_type: type[TimerAlternative], steps: list[Step]
) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(_compare_with_a_list(alternative_type, steps))


async def _compare_with_a_list(alternative_type: type[TimerAlternative], steps: list[Step]) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    tally = RecordingTally()
    # By the number of the timeout; None when it was cancelled.
    deadlines: list[float | None] = []
    holds: list[tuple[float, float]] = []
    async with alternative_type(tally) as timers:
        for tenths, action, number in steps:
            await asyncio.sleep(tenths / 10_000)
            seconds = number / 10_000
            chosen = number % max(1, len(deadlines))
            if action == "add":
                timers.add_all([seconds])
                deadlines.append(loop.time() + seconds)
            elif action == "hold":
                holds.append((loop.time(), loop.time() + seconds))
                loop.jump(seconds)
            # A timeout that is due may have been found by its timer already.
            elif deadlines and (deadlines[chosen] or 0) > loop.time() + RESOLUTION:
                if action == "cancel":
                    timers.cancel_all([chosen])
                    deadlines[chosen] = None
                else:
                    timers.renew_all([chosen], seconds)
                    deadlines[chosen] = loop.time() + seconds
        await asyncio.sleep(1.0)
    early = (RESOLUTION if alternative_type is SystemTimer else 0.0) + ROUNDING
    for number, deadline in enumerate(deadlines):
        if deadline is None:
            assert number not in tally.times
            continue
        (expired,) = tally.times[number]
        latest = deadline + RESOLUTION
        for begin, end in holds:
            # A hold may follow right behind another.
            if begin <= latest:
                latest = max(latest, end)
        assert deadline - early <= expired <= latest + ROUNDING
    order = [deadlines[number] or 0.0 for number in tally.times]
    assert all(b >= a - RESOLUTION - early for a, b in pairwise(order))


@each_timer
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
    await asyncio.sleep(0)
    assert virtual_time.idle_for() is None
    # Once, at its time or up to a millisecond later; or earlier, with Kafka's.
    expected = {number: 0.9 + 0.4 * (number // 10) for number in range(100)}
    assert tally.times == {number: [pytest.approx(at, abs=0.0011)] for number, at in expected.items()}
    assert asyncio.all_tasks() == tasks
