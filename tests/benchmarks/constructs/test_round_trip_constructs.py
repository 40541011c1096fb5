"""Every way to wait that takes part in the comparison of designs: nothing is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
import random

import pytest

from benchmarks.constructs import ROUND_TRIP, RoundTripConstruct, Tally
from benchmarks.constructs.kafka_08_waits import Kafka08
from benchmarks.constructs.kafka_waits import KafkaToday
from benchmarks.constructs.older_designs import OLDER_DESIGNS
from benchmarks.constructs.purgatory_waits import PurgatoryCallback
from purgatory.testing import VirtualTimeLoop
from tests.benchmarks.constructs.recording import RecordingTally

CONSTRUCTS = tuple(dict.fromkeys((*ROUND_TRIP, *OLDER_DESIGNS)))
# They leave completed waits on the watch lists of the keys that were not checked.
KEEPS_COMPLETED = (Kafka08, KafkaToday)


@pytest.fixture(params=CONSTRUCTS, ids=lambda construct: construct.name)
def construct_type(request: pytest.FixtureRequest) -> type[RoundTripConstruct]:
    chosen: type[RoundTripConstruct] = request.param
    return chosen


def random_targets(count: int, keys: int) -> list[tuple[int, ...]]:
    choice = random.Random(1)
    return [tuple(choice.sample(range(keys), 3)) for _ in range(count)]


async def test_every_wait_is_completed_by_a_signal_or_expires_and_none_of_them_twice(
    construct_type: type[RoundTripConstruct], virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    targets = random_targets(2_000, 100)
    timeouts = [0.005 * (1 + request % 20) for request in range(2_000)]
    async with construct_type(tally) as construct:
        construct.park(range(2_000), targets, timeouts)
        assert construct.held == 6_000
        await asyncio.sleep(0.0525)
        expired = tally.expired
        assert (tally.completed, expired) == (0, 1_000)

        tally.ready = True
        construct.signal(range(0, 100, 2))
        by_even_keys = tally.completed
        assert 500 < by_even_keys < 1_000
        construct.signal(range(0, 100, 2))
        assert tally.completed == by_even_keys
        construct.signal(range(100))
        assert (tally.completed, construct.held) == (1_000, 0)

        await asyncio.sleep(1.0)
        assert (tally.completed, tally.expired) == (1_000, 1_000)
    assert tally.times == {
        request: [pytest.approx(timeouts[request], abs=0.0011)]
        for request in range(2_000)
        if request % 20 < 10
    }


async def test_all_that_is_never_signalled_expires_at_its_time(
    construct_type: type[RoundTripConstruct], virtual_time: VirtualTimeLoop
) -> None:
    tally = RecordingTally()
    async with construct_type(tally) as construct:
        construct.park(range(100), [(1, 2, 3)] * 100, [5.0 + request / 100 for request in range(100)])
        await asyncio.sleep(10.0)
    assert tally.times == {
        request: [pytest.approx(5.0 + request / 100, abs=0.0011)] for request in range(100)
    }
    assert list(tally.times) == list(range(100))


@pytest.mark.parametrize("construct_type", [PurgatoryCallback, *OLDER_DESIGNS])
async def test_a_signal_completes_nothing_as_long_as_the_condition_does_not_hold(
    construct_type: type[RoundTripConstruct], virtual_time: VirtualTimeLoop
) -> None:
    tally = Tally()
    async with construct_type(tally) as construct:
        construct.park(range(100), random_targets(100, 10), [10.0] * 100)
        construct.signal(range(10))
        assert (tally.completed, construct.held) == (0, 300)
        tally.ready = True
        construct.signal(range(10))
        assert (tally.completed, construct.held) == (100, 0)


async def test_with_all_keys_checked_only_what_is_outstanding_is_held(
    construct_type: type[RoundTripConstruct], virtual_time: VirtualTimeLoop
) -> None:
    async with construct_type(Tally()) as construct:
        targets = random_targets(1_000, 10_000)
        construct.turn_over(targets[:60], 100, 3)
        assert construct.held == 180
        for first in range(60, 1_000, 47):
            construct.turn_over(targets[first : first + 47], 100, 3)
            assert construct.held == 300
            await asyncio.sleep(0)


async def test_with_one_key_checked_kafkas_hold_the_completed_until_they_are_purged(
    construct_type: type[RoundTripConstruct], virtual_time: VirtualTimeLoop
) -> None:
    # Keys that are never checked: of no two waits the same.
    targets = [(key, key + 1, key + 2) for key in range(0, 6_000, 3)]
    async with construct_type(Tally()) as construct:
        construct.turn_over(targets, 100, 1)
        assert construct.held == 300 + 2 * 1_900 * issubclass(construct_type, KEEPS_COMPLETED)
        await asyncio.sleep(0.21)
        assert construct.held == 300


async def test_nothing_is_armed_in_the_end_and_nothing_runs(
    construct_type: type[RoundTripConstruct], virtual_time: VirtualTimeLoop
) -> None:
    tally = Tally()
    tasks = asyncio.all_tasks()
    async with construct_type(tally) as construct:
        construct.park(range(10), random_targets(10, 5), [10.0] * 10)
        await asyncio.sleep(1.0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == tasks
    if construct_type in OLDER_DESIGNS:
        assert virtual_time.idle_for() is None
    assert (tally.completed, tally.expired) == (0, 0)


def test_names_are_different_and_short() -> None:
    names = [construct.name for construct in OLDER_DESIGNS]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 26 for name in names)


async def test_it_works_on_a_real_loop(construct_type: type[RoundTripConstruct]) -> None:
    tally = RecordingTally()
    targets = random_targets(1_000, 100)
    soon, later = [0.001 + request / 1e6 for request in range(500)], [60.0] * 500
    async with construct_type(tally) as construct:
        construct.turn_over(targets, 50, 3)
        construct.park(range(1_000), targets, soon + later)
        await tally.until_expired(500)
        tally.ready = True
        construct.signal(range(100))
        assert (tally.completed, tally.expired) == (500, 500)
        assert construct.held == 150
    assert set(tally.times) == set(range(500))
