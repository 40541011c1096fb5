"""Heartbeats: sessions whose timeout starts anew whenever something is heard of them."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence

from benchmarks import sizes
from benchmarks.collector_setting import CollectorSetting
from benchmarks.constructs import RENEWABLE, Tally, TimerConstruct
from benchmarks.constructs.asyncio_timeouts import AsyncioTimeouts
from benchmarks.loops import run, turns
from benchmarks.question import Column, Question, Sample, Table
from benchmarks.setting import Setting

# How many make one turn of the loop.
BATCH = 1_000
TIMEOUT = 60.0
# A task each takes too long, and too much memory, for more.
MOST_TASKS = 100_000


def sessions(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question."""

    def measured(construct: type[TimerConstruct]) -> Callable[[], Sample]:
        return lambda: sizes.measured(
            numbers,
            lambda number: measure(setting.loop, construct, number, setting.times),
            growing=("us",),
            at_most=MOST_TASKS if construct is AsyncioTimeouts else None,
        )

    headline = numbers[0]
    return Question(
        name="sessions",
        summary="heartbeats of sessions, each of which renews a timeout",
        contenders=tuple(
            contender
            for construct in RENEWABLE
            for contender in setting.contenders(
                "renewed by heartbeats", construct.name, measured(construct), interpreted=True
            )
        ),
        tables=(
            Table(
                title="A heartbeat of one of n sessions renews its timeout: microseconds",
                columns=sizes.columns("us", numbers),
                note=f"Processor time. {setting.times:,} heartbeats, {BATCH:,} in each turn of the loop, "
                "each of a session drawn by lot. What cannot renew a timeout cancels it and adds another. "
                "Collector as the README advises.",
            ),
            Table(
                title=f"The same, n = {headline:,}: how many heartbeats that makes per second",
                columns=(
                    Column(sizes.at("us", headline), "microseconds", spread=False),
                    Column(sizes.at("per_second", headline), "per second"),
                ),
            ),
        ),
        patience=20.0,
    )


def measure(loop: str, construct: type[TimerConstruct], pending: int, times: int) -> Sample:
    """Microseconds for each heartbeat of one of so many sessions, and how many that makes in a second."""
    return run(loop, _renewed(construct, pending, -(-times // BATCH)))


async def _renewed(construct_type: type[TimerConstruct], pending: int, rounds: int) -> Sample:
    choice = random.Random(1)
    seconds = 0.0
    tally = Tally()
    async with construct_type(tally) as construct:
        with CollectorSetting.ADVISED.applied():
            construct.add([TIMEOUT] * pending)
            await turns(2)
            # They have been there for a while, as far as the collector is concerned.
            gc.collect()
            for _ in range(rounds):
                requests = choice.choices(range(pending), k=BATCH)
                start = time.process_time()
                construct.renew(requests, TIMEOUT)
                await turns(1)
                seconds += time.process_time() - start
    if tally.expired:
        raise AssertionError(f"{construct.name}: {tally.expired} sessions expired, which were alive")
    heartbeats = rounds * BATCH
    return {"us": seconds / heartbeats * 1e6, "per_second": heartbeats / seconds}
