"""What the benchmarks share: callers that wait for the disk, and a directory for each measurement."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness.benchmark import Case, Sample, Setting
from benchmarks.harness.event_loop import run
from benchmarks.suites.delayed.store import DelayStore

CALLERS = 64
PAYLOAD = b"x" * 100
# Seconds of the shortest and the longest delay; all between are as likely on a logarithmic scale.
SHORTEST, LONGEST = 1.0, 7200.0
# Callers where the rate does not matter, and seconds between scheduling and the first due time.
AT_ONCE, HALF_A_MINUTE = 1000, 30.0
# Seconds that a store gets after it was opened.
SETTLED = 2.0
Kind = type[DelayStore]


def delays() -> Iterator[float]:
    """Without end, and the same each time."""
    choice = random.Random(1)
    while True:
        yield SHORTEST * (LONGEST / SHORTEST) ** choice.random()


async def call(callers: int, each: Callable[[Any], Awaitable[object]], arguments: Iterable[Any]) -> None:
    """Each caller takes the next argument when it has its answer."""
    left = iter(arguments)

    async def caller() -> None:
        for argument in left:
            await each(argument)

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(caller())


def cases(setting: Setting, kinds: Iterable[Kind], measure: Callable[[Kind], Sample]) -> Iterator[Case]:
    """Those whose server is not installed have no figures."""

    def measured(kind: Kind) -> Sample:
        return measure(kind) if kind.available else {}

    return setting.cases("all on one loop", kinds, measured, interpreted=False)


def in_directory(setting: Setting, kind: Kind, measure: Callable[..., Any], *arguments: Any) -> Sample:
    with tempfile.TemporaryDirectory(dir=setting.directory) as directory:
        sample: Sample = run(setting.loop, measure, kind, Path(directory), *arguments)
        return sample
