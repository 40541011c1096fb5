"""What the older designs cost by construction: entries of the dead, idle wake-ups, early expiry, scans."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from benchmarks.designs.alternative import RoundTrips, Tally
from benchmarks.designs.kafka_08 import DelayedRequest, Kafka08
from benchmarks.designs.kafka_today import DelayedOperation, KafkaToday, SystemTimer
from benchmarks.designs.timers import TickerWheel
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.designs.recording import RecordingTally


async def test_a_ticker_wheel_wakes_at_every_tick_and_scans_a_slot_in_every_round(
    virtual_time: VirtualTimeLoop,
) -> None:
    tally = Tally()
    async with TickerWheel(tally, wheel_size=10) as wheel:
        await asyncio.sleep(1.0)
        assert (wheel.wakeups, wheel.visited) == (1000, 0)
        wheel.add_all([1.0] * 50)
        await asyncio.sleep(0.9955)
        assert (tally.expired, wheel.visited) == (0, 50 * 99)
        await asyncio.sleep(0.01)
        assert (tally.expired, wheel.visited) == (50, 50 * 100)


@pytest.mark.parametrize(
    ("delays", "cancelled", "wakeups"),
    [
        # An entry comes down a level at a time: at 400, 440 and 457 ms.
        ([0.457], 0, 3),
        # Emptied buckets wake it, too.
        ([number / 1000 for number in range(1, 11)], 10, 10),
    ],
)
async def test_kafkas_timer_wakes_for_each_bucket_that_was_used(
    delays: Sequence[float], cancelled: int, wakeups: int, virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    async with SystemTimer(tally) as timer:
        timer.add_all(delays)
        timer.cancel_all(range(cancelled))
        await asyncio.sleep(1.0)
        assert timer.wakeups == wakeups
    assert tally.times == {
        number: [pytest.approx(delays[number])] for number in range(cancelled, len(delays))
    }


async def test_kafkas_timer_fires_up_to_a_millisecond_early(virtual_time: VirtualTimeLoop) -> None:
    tally = RecordingTally()
    async with SystemTimer(tally) as timer:
        await asyncio.sleep(0.0109)
        timer.add_all([0.005])
        await asyncio.sleep(1.0)
    assert tally.times == {0: [pytest.approx(0.015)]}


def parked(
    purgatory: RoundTrips, tally: Tally, count: int, keys: Sequence[int], delay: float = 30.0
) -> list[DelayedOperation | DelayedRequest]:
    waits = [purgatory.make(delay, 0, tally) for _ in range(count)]
    for wait in waits:
        purgatory.watch(wait, keys)
    return waits


@pytest.mark.parametrize(("design", "expected"), [(KafkaToday, 0), (Kafka08, 100)])
async def test_what_has_completed_stays_on_its_other_lists_until_a_check_walks_over_it(
    design: type[KafkaToday | Kafka08], expected: int, virtual_time: VirtualTimeLoop
) -> None:
    tally = Tally()
    async with design(tally) as purgatory:
        parked(purgatory, tally, 100, (1, 2, 3))
        tally.ready = True
        purgatory.signal([1])
        assert (tally.completed, purgatory.held) == (100, 200)
        purgatory.signal([2])
        assert (tally.completed, purgatory.held) == (100, 100)
        # In 0.8 a request that is satisfied stays in the queue until it would have expired.
        assert len(purgatory.queue if isinstance(purgatory, Kafka08) else purgatory.timer) == expected
        await asyncio.sleep(100.0)
        assert (purgatory.held, purgatory.walked, tally.expired) == (100, 0, 0)


async def test_kafka_purges_when_more_than_the_interval_have_completed_and_walks_over_every_list(
    virtual_time: VirtualTimeLoop,
) -> None:
    alive = Tally()
    async with KafkaToday(Tally()) as purgatory:
        parked(purgatory, alive, 5_000, (4, 5))
        for count, walked, held in ((1_000, 0, 12_000), (1, 12_002, 10_000)):
            waiting = Tally()
            parked(purgatory, waiting, count, (1, 2, 3))
            waiting.ready = True
            purgatory.check(1)
            await asyncio.sleep(1.0)
            assert (purgatory.walked, purgatory.held) == (walked, held)
        alive.ready = True
        assert purgatory.check(4) == 5_000


async def test_with_so_many_pending_kafka_08_purges_whenever_the_reaper_wakes_for_nothing(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with Kafka08(Tally()) as purgatory:
        parked(purgatory, Tally(), 1_000, (1, 2))
        await asyncio.sleep(10.1)
        assert purgatory.walked == 50 * (2_000 + 1_000)
        assert (purgatory.held, len(purgatory.queue)) == (2_000, 1_000)
