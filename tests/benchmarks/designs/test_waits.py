"""The contract of every design that is compared: nothing is lost, and nothing happens twice."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.designs import KAFKAS
from benchmarks.designs.alternative import (
    TURNS_TO_COMPLETE,
    TURNS_TO_PARK,
    RoundTrips,
    Tally,
    WaitAlternative,
    signals,
    targets,
)
from benchmarks.designs.callbacks import BareCallback
from benchmarks.designs.purgatory_waits import OperationsAlone
from benchmarks.designs.tasks import BareFuture
from benchmarks.harness.event_loop import turns
from benchmarks.suites.waits import ONE_KEY, ROUND_TRIPS, THREE_KEYS
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.designs.recording import RecordingTally

# The floors, which have no timeout.
FLOORS = (BareCallback, BareFuture, OperationsAlone)


@pytest.mark.parametrize(
    ("alternative_type", "keys"),
    [*((each, 1) for each in ONE_KEY), *((each, 3) for each in THREE_KEYS)],
)
async def test_every_wait_is_completed_by_a_signal_or_expires_at_its_time(
    alternative_type: type[WaitAlternative], keys: int, virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    floor = alternative_type in FLOORS
    async with alternative_type(tally) as alternative:
        # A hundred on keys that are signalled, a hundred on others.
        timeouts = [5.0 + request / 100 for request in range(200)]
        alternative.park(range(200), targets(200, keys, per_key=20), iter(timeouts))
        await turns(TURNS_TO_PARK)
        if alternative_type in ROUND_TRIPS:
            # The condition does not hold.
            alternative.signal(list(signals(200, keys, per_key=20)))
            assert tally.completed == 0
        tally.ready = True
        for key in list(signals(200, keys, per_key=20))[::2]:
            alternative.signal([key])
        await turns(TURNS_TO_COMPLETE)
        assert (tally.completed, tally.expired) == (100, 0)
        tally.ready = False
        await asyncio.sleep(10.0)
        assert (tally.completed, tally.expired) == (100, 0 if floor else 100)
        tally.ready = True
        if floor:
            alternative.signal(list(signals(200, keys, per_key=20))[1::2])
            await turns(TURNS_TO_COMPLETE)
            assert tally.completed == 200
    assert tally.times == {
        request: [pytest.approx(timeouts[request], abs=0.0011)]
        for request in range(200)
        if request % 2 and not floor
    }


@pytest.mark.parametrize("alternative_type", ROUND_TRIPS)
async def test_a_turnover_holds_what_is_outstanding_and_kafkas_also_completed_waits_until_a_purge(
    alternative_type: type[RoundTrips], virtual_time: VirtualTimeLoop
) -> None:
    distinct = [(key, key + 1, key + 2) for key in range(0, 6_000, 3)]
    async with alternative_type(Tally()) as alternative:
        alternative.turn_over(distinct[:60], 100, 3)
        assert alternative.held == 180
        alternative.turn_over(distinct[60:1_000], 100, 3)
        assert alternative.held == 300
    async with alternative_type(Tally()) as alternative:
        alternative.turn_over(distinct, 100, 1)
        assert alternative.held == 300 + 2 * 1_900 * (alternative_type in KAFKAS)
        await asyncio.sleep(0.21)
        assert alternative.held == 300


def test_waits_share_all_their_keys_or_none_and_a_signal_reaches_each() -> None:
    assert targets(6, 3, per_key=2) == [(0, 1, 2), (3, 4, 5), (6, 7, 8)] * 2
    for waits in range(1, 30):
        for keys in (1, 3):
            made = targets(waits, keys)
            assert len(made) == waits
            assert {target[0] for target in made} == set(signals(waits, keys))
