"""What a timer does while nothing is due."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Callable, Sequence

from benchmarks.constructs import TIMERS, Tally, TimerConstruct
from benchmarks.loops import run, turns
from benchmarks.question import Column, Question, Sample, Table
from benchmarks.setting import Setting
from benchmarks.sizes import at

SHORTEST, LONGEST = 60.0, 120.0


def idle(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question, with the first of `numbers` pending, and with nothing."""
    number = numbers[0]

    def measured(construct: type[TimerConstruct]) -> Callable[[], Sample]:
        return lambda: measure(setting.loop, construct, number, setting.seconds)

    return Question(
        name="idle",
        summary="wake-ups while nothing is due",
        contenders=tuple(
            contender
            for construct in TIMERS
            for contender in setting.contenders("nothing due", construct.name, measured(construct))
        ),
        tables=(
            Table(
                title="Nothing is due: wake-ups in a second, and processor time",
                columns=(
                    Column(at("wakeups", 0), "none pending", spread=False),
                    Column(at("wakeups", number), f"{number:,} pending", spread=False),
                    Column(at("busy_ms", 0), "none: ms", spread=False),
                    Column(at("busy_ms", number), f"{number:,}: ms", spread=False),
                ),
                note="Timeouts of one to two minutes. The process that sleeps uses some processor time, too.",
            ),
        ),
        # Once: what is counted does not vary.
        patience=0.0,
    )


def measure(loop: str, construct: type[TimerConstruct], pending: int, seconds: float) -> Sample:
    """Wake-ups, and milliseconds of processor time, per second, with nothing and with so many pending."""
    return {
        at(metric, number): figure
        for number in (0, pending)
        for metric, figure in run(loop, _watched(construct, number, seconds)).items()
    }


async def _watched(construct_type: type[TimerConstruct], pending: int, seconds: float) -> Sample:
    choice = random.Random(1)
    async with construct_type(Tally()) as construct:
        construct.add([choice.uniform(SHORTEST, LONGEST) for _ in range(pending)])
        # Until it is at rest.
        await turns(3)
        gc.collect()
        wakeups, busy = construct.wakeups, time.process_time()
        await asyncio.sleep(seconds)
        return {
            "wakeups": (construct.wakeups - wakeups) / seconds,
            "busy_ms": (time.process_time() - busy) / seconds * 1e3,
        }
