"""As many waits complete as are parked: the cost of a round trip, and the entries of the watch lists."""

from __future__ import annotations

import statistics
import time
from functools import partial

from benchmarks.designs import OLDER_DESIGNS
from benchmarks.designs.alternative import RoundTripAlternative, Tally
from benchmarks.designs.callbacks import SeveralKeysTimedCallback
from benchmarks.designs.purgatory_waits import PurgatoryCallback
from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark, medians, spreads
from benchmarks.harness.event_loop import CollectorSetting, run, turns

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


@benchmark("steady-state", "round trips with as many completed as parked", (1_000,), (1_000, 10_000, 100_000))
def steady_state(setting: Setting) -> Parts:
    headline = setting.sizes[0]
    # Enough that designs which purge now and then have done so.
    round_trips = 2 * setting.times
    yield Table(
        "A wait on three keys is parked, the oldest of n completed: microseconds",
        setting.growth("us"),
        f"Processor time of a round trip; {round_trips:,} of them, {BATCH:,} to a turn of the "
        "loop. Collector as the README advises.",
    )
    yield Table(
        f"The same with n = {headline:,}: what is done per second, and what is held",
        medians(headline, held="entries held") + spreads(headline, per_second="round trips/s"),
        "Entries are those of the watch lists, on average: three for each wait that is alive. "
        "The others are of waits that were completed and not purged yet.",
    )
    for section, checked in (
        ("one of its three keys is checked", 1),
        ("all of its three keys are checked", KEYS),
    ):
        measured = partial(run, setting.loop, measure, checked, round_trips)
        yield from setting.sized(section, ALTERNATIVES, measured, ["us"])


async def measure(
    checked: int, round_trips: int, alternative_type: type[RoundTripAlternative], outstanding: int
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
