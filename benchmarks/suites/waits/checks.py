"""Checks that complete nothing: of a key without watchers, and of waits that are not satisfied yet."""

from __future__ import annotations

import time
from functools import partial
from itertools import repeat

from benchmarks.designs import KAFKAS
from benchmarks.designs.alternative import TIMEOUT, Tally, WaitAlternative, signals, targets
from benchmarks.designs.callback_dict import DictAndCallAt
from benchmarks.designs.purgatory_waits import PurgatoryCallback
from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark
from benchmarks.harness.event_loop import CollectorSetting, run, turns

# The designs that look at a condition before they complete anything.
ALTERNATIVES: tuple[type[WaitAlternative], ...] = (PurgatoryCallback, *KAFKAS, DictAndCallAt)
FEW, MANY = 10, 1_000


@benchmark("checks", "checks that complete nothing", (100_000,), (100_000, 10_000, 1_000_000))
def checks(setting: Setting) -> Parts:
    yield Table(
        f"A key with {FEW} of n waits is checked: microseconds for each that is tried",
        setting.growth("tried_few_us"),
        "Processor time; every key is checked once. Collector as the README advises.",
    )
    yield Table(
        f"A key with {MANY:,} of n waits is checked: microseconds for each that is tried",
        setting.growth("tried_many_us"),
    )
    yield Table(
        "A key that nobody watches is checked, with n pending on others: microseconds",
        setting.growth("unwatched_us"),
    )
    yield from setting.sized(
        "a condition each, which does not hold",
        ALTERNATIVES,
        partial(measure, setting),
        ["tried_few_us", "tried_many_us", "unwatched_us"],
        at_least=setting.times,
    )


def measure(setting: Setting, alternative: type[WaitAlternative], pending: int) -> Sample:
    """Microseconds to try a wait in vain, few and many to a key; and to check a key without watchers."""
    few, unwatched = run(setting.loop, _checked, alternative, pending, FEW, setting.times)
    many, _ = run(setting.loop, _checked, alternative, pending, MANY, setting.times)
    return {"tried_few_us": few, "tried_many_us": many, "unwatched_us": unwatched}


async def _checked(
    alternative_type: type[WaitAlternative], pending: int, per_key: int, times: int
) -> tuple[float, float]:
    """Microseconds for each wait that is tried, and for each key without watchers."""
    watched = signals(pending, 1, per_key)
    tally = Tally()
    async with alternative_type(tally) as alternative:
        with CollectorSetting.ADVISED.applied():
            alternative.park(range(pending), targets(pending, 1, per_key), repeat(TIMEOUT))
            start = time.process_time()
            alternative.signal(watched)
            tried = time.process_time()
            alternative.signal(range(-times, 0))
            checked = time.process_time()
        tally.expect(alternative, completed=0)
        tally.ready = True
        alternative.signal(watched)
        await turns(1)
    tally.expect(alternative, completed=pending)
    return (tried - start) / pending * 1e6, (checked - tried) / times * 1e6
