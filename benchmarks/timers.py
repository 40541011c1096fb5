"""A timeout that is withdrawn before it is due, while very many others are pending."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence

from benchmarks import sizes
from benchmarks.collector_setting import CollectorSetting
from benchmarks.constructs import TIMERS, Tally, TimerConstruct
from benchmarks.loops import run, turns
from benchmarks.question import Column, Question, Sample, Table
from benchmarks.setting import Setting

# How many make one turn of the loop.
BATCH = 1_000
# Seconds: nothing is due before the measurement is over, and few are due at the same time.
SHORTEST, LONGEST = 60.0, 120.0


def timers(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question."""

    def measured(construct: type[TimerConstruct]) -> Callable[[], Sample]:
        return lambda: sizes.measured(
            numbers, lambda number: measure(setting.loop, construct, number, setting.times), growing=("us",)
        )

    headline = numbers[0]
    return Question(
        name="timers",
        summary="timeouts added and cancelled while others are pending",
        contenders=tuple(
            contender
            for construct in TIMERS
            for contender in setting.contenders(
                "timers", construct.name, measured(construct), interpreted=True
            )
        ),
        tables=(
            Table(
                title="A timeout is added and cancelled while n others are pending: microseconds",
                columns=sizes.columns("us", numbers),
                note=f"Processor time, the user's object included. {setting.times:,} timeouts, {BATCH:,} of "
                "them in each turn of the loop, cancelled in random order. Collector as the README advises.",
            ),
            Table(
                title=f"The two halves, n = {headline:,}: microseconds each",
                columns=(
                    Column(sizes.at("add_us", headline), "add"),
                    Column(sizes.at("cancel_us", headline), "cancel, and clear away"),
                ),
            ),
        ),
        patience=20.0,
    )


def measure(loop: str, construct: type[TimerConstruct], pending: int, times: int) -> Sample:
    """Microseconds to add one and to cancel it, with so many pending."""
    return run(loop, _added_and_cancelled(construct, pending, -(-times // BATCH)))


async def _added_and_cancelled(construct_type: type[TimerConstruct], pending: int, rounds: int) -> Sample:
    choice = random.Random(1)
    adding = cancelling = 0.0
    tally = Tally()
    async with construct_type(tally) as construct:
        with CollectorSetting.ADVISED.applied():
            construct.add([choice.uniform(SHORTEST, LONGEST) for _ in range(pending)])
            await turns(1)
            # They have been there for a while, as far as the collector is concerned.
            gc.collect()
            for first in range(pending, pending + rounds * BATCH, BATCH):
                delays = [choice.uniform(SHORTEST, LONGEST) for _ in range(BATCH)]
                requests = choice.sample(range(first, first + BATCH), BATCH)
                start = time.process_time()
                construct.add(delays)
                added = time.process_time()
                construct.cancel(requests)
                await turns(1)
                adding += added - start
                cancelling += time.process_time() - added
    if tally.expired:
        raise AssertionError(f"{construct.name}: {tally.expired} timeouts expired, which were not due")
    timeouts = rounds * BATCH
    return {
        "us": (adding + cancelling) / timeouts * 1e6,
        "add_us": adding / timeouts * 1e6,
        "cancel_us": cancelling / timeouts * 1e6,
    }
