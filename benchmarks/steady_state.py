"""As many waits complete as are parked: what a round trip costs, and what the watch lists hold meanwhile."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks import sizes
from benchmarks.collector_setting import CollectorSetting
from benchmarks.constructs import ROUND_TRIP, Key, RoundTripConstruct, Tally
from benchmarks.loops import run, turns
from benchmarks.question import Column, Question, Sample, Table
from benchmarks.setting import Setting

KEYS = 3
# How many make one turn of the loop.
BATCH = 1_000
# Every so many batches it is counted what the lists hold: designs that purge hold more and more in between.
COUNT_EVERY = 10

CHECKED = {"one of its three keys is checked": 1, "all of its three keys are checked": KEYS}


def steady_state(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question: `numbers` of waits outstanding."""

    def measured(construct: type[RoundTripConstruct], checked: int) -> Callable[[], Sample]:
        return lambda: sizes.measured(
            numbers,
            lambda outstanding: measure(setting.loop, construct, outstanding, checked, round_trips),
            growing=("us",),
        )

    headline = numbers[0]
    # Enough that designs which purge every now and then have done so.
    round_trips = 2 * setting.times
    return Question(
        name="steady-state",
        summary="round trips with as many completed as parked",
        contenders=tuple(
            contender
            for section, checked in CHECKED.items()
            for construct in ROUND_TRIP
            for contender in setting.contenders(
                section, construct.name, measured(construct, checked), interpreted=True
            )
        ),
        tables=(
            Table(
                title="A wait on three keys is parked, the oldest of n completed: microseconds",
                columns=sizes.columns("us", numbers),
                note=f"Processor time of a round trip; {round_trips:,} of them, {BATCH:,} to a turn of the "
                "loop. Collector as the README advises.",
            ),
            Table(
                title=f"The same with n = {headline:,}: what is done per second, and what is held",
                columns=(
                    Column(sizes.at("held", headline), "entries held", spread=False),
                    Column(sizes.at("per_second", headline), "round trips/s"),
                ),
                note="Entries are those of the watch lists, on average: three for each wait that is alive. "
                "The others are of waits that were completed and not purged yet.",
            ),
        ),
        patience=20.0,
    )


def measure(
    loop: str, construct: type[RoundTripConstruct], outstanding: int, checked: int, round_trips: int
) -> Sample:
    """Microseconds for each round trip, with so many outstanding; round trips per second; entries held."""
    return run(loop, _turned_over(construct, outstanding, checked, -(-round_trips // BATCH)))


async def _turned_over(
    construct_type: type[RoundTripConstruct], outstanding: int, checked: int, rounds: int
) -> Sample:
    # Their keys are used again, as most keys are, but not while somebody waits for them.
    batches = [_batch(first) for first in range(0, outstanding + 2 * BATCH, BATCH)]
    held = []
    seconds = 0.0
    async with construct_type(Tally()) as construct:
        with CollectorSetting.ADVISED.applied():
            # What fills it up first is not counted.
            warm_up = range(-len(batches), 0)
            for number in (*warm_up, *range(rounds)):
                start = time.process_time()
                construct.turn_over(batches[number % len(batches)], outstanding, checked)
                await turns(1)
                if number >= 0:
                    seconds += time.process_time() - start
                    if number % COUNT_EVERY == 0:
                        held.append(construct.held)
    if min(held) < KEYS * outstanding:
        raise AssertionError(f"{construct.name}: fewer than {outstanding} waits were outstanding")
    trips = rounds * BATCH
    return {"us": seconds / trips * 1e6, "per_second": trips / seconds, "held": statistics.fmean(held)}


def _batch(first: int) -> list[tuple[Key, ...]]:
    return [tuple(range(key, key + KEYS)) for key in range(KEYS * first, KEYS * (first + BATCH), KEYS)]
