"""Checks that complete nothing: of a key that nobody watches, and of waits that are not satisfied yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import repeat

from benchmarks import sizes
from benchmarks.collector_setting import CollectorSetting
from benchmarks.constructs import CONDITIONAL, TIMEOUT, Construct, Tally
from benchmarks.loops import run, turns
from benchmarks.question import Question, Sample, Table
from benchmarks.setting import Setting
from benchmarks.waits import signals, targets

FEW, MANY = 10, 1_000


def checks(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question, with `numbers` of waits pending."""

    def measured(construct: type[Construct]) -> Callable[[], Sample]:
        return lambda: sizes.measured(
            numbers,
            lambda number: measure(setting.loop, construct, number, setting.times),
            growing=("tried_few_us", "tried_many_us", "unwatched_us"),
            at_least=setting.times,
        )

    return Question(
        name="checks",
        summary="checks that complete nothing",
        contenders=tuple(
            contender
            for construct in CONDITIONAL
            for contender in setting.contenders(
                "a condition each, which does not hold", construct.name, measured(construct), interpreted=True
            )
        ),
        tables=(
            Table(
                title=f"A key with {FEW} of n waits is checked: microseconds for each that is tried",
                columns=sizes.columns("tried_few_us", numbers),
                note="Processor time; every key is checked once. Collector as the README advises.",
            ),
            Table(
                title=f"A key with {MANY:,} of n waits is checked: microseconds for each that is tried",
                columns=sizes.columns("tried_many_us", numbers),
            ),
            Table(
                title="A key that nobody watches is checked, with n pending on others: microseconds",
                columns=sizes.columns("unwatched_us", numbers),
            ),
        ),
        patience=20.0,
    )


def measure(loop: str, construct: type[Construct], pending: int, times: int) -> Sample:
    """Microseconds to try a wait in vain, few and many to a key; and to check a key without any."""
    few, unwatched = run(loop, _checked(construct, pending, FEW, times))
    many, _ = run(loop, _checked(construct, pending, MANY, times))
    return {"tried_few_us": few, "tried_many_us": many, "unwatched_us": unwatched}


async def _checked(
    construct_type: type[Construct], pending: int, per_key: int, times: int
) -> tuple[float, float]:
    """Microseconds for each wait that is tried, and for each key that nobody watches."""
    watched = signals(pending, 1, per_key)
    tally = Tally()
    async with construct_type(tally) as construct:
        with CollectorSetting.ADVISED.applied():
            construct.park(range(pending), targets(pending, 1, per_key), repeat(TIMEOUT))
            start = time.process_time()
            construct.signal(watched)
            tried = time.process_time()
            construct.signal(range(-times, 0))
            checked = time.process_time()
        if tally.completed:
            raise AssertionError(f"{construct.name}: {tally.completed} waits completed unsatisfied")
        tally.ready = True
        construct.signal(watched)
        await turns(1)
    if tally.completed != pending:
        raise AssertionError(f"{construct.name}: {tally.completed} of {pending} waits were on those keys")
    return (tried - start) / pending * 1e6, (checked - tried) / times * 1e6
