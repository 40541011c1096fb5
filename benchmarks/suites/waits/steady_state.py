"""As many waits complete as are parked: the cost of a round trip, and the entries of the watch lists."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.designs import OLDER_DESIGNS
from benchmarks.designs.alternative import RoundTripAlternative, Tally
from benchmarks.designs.callbacks import SeveralKeysTimedCallback
from benchmarks.designs.purgatory_waits import PurgatoryCallback
from benchmarks.harness.benchmark import Benchmark, Column, Sample, Table
from benchmarks.harness.event_loop import CollectorSetting, run, turns
from benchmarks.harness.setting import Setting
from benchmarks.harness.sizes import at, measure_sizes, size_columns

ALTERNATIVES: tuple[type[RoundTripAlternative], ...] = (
    PurgatoryCallback,
    SeveralKeysTimedCallback,
    *OLDER_DESIGNS,
)
KEYS = 3
# Waits in one turn of the loop.
BATCH = 1_000
# Batches between two counts of the entries: designs that purge hold more and more in between.
COUNT_EVERY = 10
CHECKED = {"one of its three keys is checked": 1, "all of its three keys are checked": KEYS}


def steady_state(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Round trips with `sizes` of waits outstanding."""
    headline = sizes[0]
    # Enough that designs which purge now and then have done so.
    round_trips = 2 * setting.times

    def measured(checked: int, alternative: type[RoundTripAlternative]) -> Sample:
        return measure_sizes(
            sizes,
            lambda size: run(setting.loop, measure(alternative, size, checked, round_trips)),
            growing=("us",),
        )

    return Benchmark(
        name="steady-state",
        summary="round trips with as many completed as parked",
        cases=tuple(
            case
            for section, checked in CHECKED.items()
            for case in setting.cases_of(section, ALTERNATIVES, partial(measured, checked), interpreted=True)
        ),
        tables=(
            Table(
                "A wait on three keys is parked, the oldest of n completed: microseconds",
                size_columns("us", sizes),
                f"Processor time of a round trip; {round_trips:,} of them, {BATCH:,} to a turn of the "
                "loop. Collector as the README advises.",
            ),
            Table(
                f"The same with n = {headline:,}: what is done per second, and what is held",
                (
                    Column(at("held", headline), "entries held", spread=False),
                    Column(at("per_second", headline), "round trips/s"),
                ),
                "Entries are those of the watch lists, on average: three for each wait that is alive. "
                "The others are of waits that were completed and not purged yet.",
            ),
        ),
        time_limit=20.0,
    )


async def measure(
    alternative_type: type[RoundTripAlternative], outstanding: int, checked: int, round_trips: int
) -> Sample:
    """Microseconds for each round trip, with so many outstanding; round trips per second; entries held."""
    rounds = -(-round_trips // BATCH)
    # Keys are used again, as most keys are, but not while a wait watches them.
    batches = [
        [tuple(range(key, key + KEYS)) for key in range(first, first + KEYS * BATCH, KEYS)]
        for first in range(0, KEYS * (outstanding + 2 * BATCH), KEYS * BATCH)
    ]
    held = []
    seconds = 0.0
    async with alternative_type(Tally()) as alternative:
        with CollectorSetting.ADVISED.applied():
            # The rounds that fill the lists first are not counted.
            warm_up = range(-len(batches), 0)
            for number in (*warm_up, *range(rounds)):
                start = time.process_time()
                alternative.turn_over(batches[number % len(batches)], outstanding, checked)
                await turns(1)
                if number >= 0:
                    seconds += time.process_time() - start
                    if number % COUNT_EVERY == 0:
                        held.append(alternative.held)
    if min(held) < KEYS * outstanding:
        raise AssertionError(f"{alternative.name}: fewer than {outstanding} waits were outstanding")
    trips = rounds * BATCH
    return {"us": seconds / trips * 1e6, "per_second": trips / seconds, "held": statistics.fmean(held)}
