"""What it costs to park a wait and to complete it, the creation of the user's own object included."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

from benchmarks import sizes
from benchmarks.collector_setting import CollectorSetting
from benchmarks.constructs import (
    ONE_KEY_AWAITED,
    ONE_KEY_CALLBACK,
    SEVERAL_KEYS_AWAITED,
    SEVERAL_KEYS_CALLBACK,
    TIMEOUT,
    Construct,
    Style,
    Tally,
)
from benchmarks.constructs.asyncio_tasks import CallLaterFuture, SharedFuture
from benchmarks.constructs.purgatory_waits import PurgatoryTask
from benchmarks.loops import run, turns
from benchmarks.question import Column, Contender, Question, Sample, Table
from benchmarks.setting import Setting
from benchmarks.waits import TURNS_TO_COMPLETE, TURNS_TO_PARK, WAITS_PER_KEY, signals, targets

# More tasks than these take minutes, and gigabytes; but for those that need the least.
MOST_TASKS = 100_000
CHEAPEST: tuple[type[Construct], ...] = (PurgatoryTask, CallLaterFuture, SharedFuture)


def one_key(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question for a wait on one key."""
    return Question(
        name="one-key",
        summary="cost to park and complete a wait on one key",
        contenders=tuple(_contenders(setting, (*ONE_KEY_CALLBACK, *ONE_KEY_AWAITED), numbers, 1)),
        tables=_tables("n waits on one key, parked and completed", numbers),
        patience=20.0,
    )


def three_keys(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question for a wait on the first of three keys."""
    return Question(
        name="three-keys",
        summary="cost to park and complete a wait on the first of three keys",
        contenders=tuple(_contenders(setting, (*SEVERAL_KEYS_CALLBACK, *SEVERAL_KEYS_AWAITED), numbers, 3)),
        tables=_tables("n waits on three keys, one of which is signalled", numbers),
        patience=20.0,
    )


def _tables(waits: str, numbers: Sequence[int]) -> tuple[Table, ...]:
    headline = numbers[0]
    return (
        Table(
            title=f"{waits}: microseconds each",
            columns=sizes.columns("total_us", numbers),
            note=f"Processor time; {WAITS_PER_KEY} waits per key, timeout {TIMEOUT:.0f} s. Includes making "
            "the user's object, waking tasks, leaving all keys, clearing cancelled timers; not what a design "
            "puts off, such as a purge (see steady-state). Slow ones are measured fewer times. The collector "
            "as the README advises: raised thresholds, and gc.freeze() after start-up.",
        ),
        Table(
            title=f"The two halves, n = {headline:,}: microseconds each",
            columns=(
                Column(sizes.at("park_us", headline), "park"),
                Column(sizes.at("complete_us", headline), "complete"),
            ),
        ),
    )


def _contenders(
    setting: Setting, constructs: Sequence[type[Construct]], numbers: Sequence[int], keys: int
) -> Iterator[Contender]:
    def measured(construct: type[Construct], collector: CollectorSetting) -> Callable[[], Sample]:
        return lambda: sizes.measured(
            # For the others, one number shows what the collector adds.
            numbers if collector is CollectorSetting.ADVISED else numbers[:1],
            lambda number: measure(setting.loop, construct, number, keys, collector),
            growing=("total_us",),
            at_least=setting.times // 5,
            at_most=MOST_TASKS if construct.style is Style.AWAITED and construct not in CHEAPEST else None,
        )

    collectors = CollectorSetting if setting.full else (CollectorSetting.ADVISED,)
    for style in Style:
        for collector in collectors:
            section = f"{style.value}, {collector.value}"
            for construct in constructs:
                if construct.style is style:
                    yield from setting.contenders(
                        section,
                        construct.name,
                        measured(construct, collector),
                        interpreted=style is Style.CALLBACK,
                    )


def measure(
    loop: str, construct: type[Construct], number: int, keys: int, collector: CollectorSetting
) -> Sample:
    """Microseconds for each of `number` waits on so many keys, one of which is signalled.

    Of processor time: nothing here sleeps, and what other processes take is not the construct's.
    """
    return run(loop, _parked_and_completed(construct, number, keys, collector))


async def _parked_and_completed(
    construct_type: type[Construct], number: int, keys: int, collector: CollectorSetting
) -> Sample:
    tally = Tally()
    requests, waited_for, signalled = list(range(number)), targets(number, keys), signals(number, keys)
    async with construct_type(tally) as construct:
        with collector.applied():
            start = time.process_time()
            construct.park(requests, waited_for, repeat(TIMEOUT))
            await turns(TURNS_TO_PARK)
            parked = time.process_time()
            tally.ready = True
            construct.signal(signalled)
            await turns(TURNS_TO_COMPLETE)
            completed = time.process_time()
    if tally.completed != number:
        raise AssertionError(f"{construct.name}: {tally.completed} of {number} waits completed")
    return {
        "park_us": (parked - start) / number * 1e6,
        "complete_us": (completed - parked) / number * 1e6,
        "total_us": (completed - start) / number * 1e6,
    }
