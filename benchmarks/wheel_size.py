"""Which wheel size measures best: ``python -m benchmarks.wheel_size``, by hand.

Small wheels need more levels, and a task sinks through each of them before it expires. Large wheels keep
their occupied slots in integers too large for a machine word.
"""

from __future__ import annotations

import gc
import math
import random
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks import tables
from benchmarks.arguments import command_line
from benchmarks.builds import build
from benchmarks.interleaving import ask_all
from benchmarks.question import Column, Contender, Question, Sample, Table
from purgatory import TimerTask, TimingWheel

# The default comes first, because the others are set in relation to it.
SIZES = (32, 16, 20, 64, 128, 256, 512, 1024)
TASKS = 100_000
PER_TICK = 100
# No wheel starts at the beginning of a level.
START = 1_234_567
# As many as the timer takes out at a time.
BATCH = 16
REPETITIONS = 7

# As many between 10 and 20 ms as between 30 and 60 s.
SHORTEST, LONGEST = 10, 60_000
# The load of the design note for Kafka's timing wheel: completions after 20 ms (median) and 60 ms (third
# quartile), log-normal, with a timeout of 200 ms, which 8 % of them reach.
TIMEOUT = 200
COMPLETED = (math.log(20), math.log(60 / 20) / 0.6745)


def wheel_size() -> Question:
    """The question."""
    choice = random.Random(1)
    spread = [round(SHORTEST * (LONGEST / SHORTEST) ** choice.random()) for _ in range(TASKS)]
    completed = [min(TIMEOUT, round(choice.lognormvariate(*COMPLETED))) for _ in range(TASKS)]

    def contender(size: int) -> Contender:
        return Contender("wheel size", str(size), lambda: measure(size, spread, completed))

    return Question(
        name="wheel-size",
        summary="wheel sizes",
        contenders=tuple(contender(size) for size in SIZES),
        tables=(
            Table(
                title="A timing wheel: microseconds per task",
                columns=(
                    Column("load_us", "typical load"),
                    Column("add_us", "add"),
                    Column("remove_us", "remove"),
                    Column("expire_us", "expire"),
                ),
                note="Typical load: timeouts of 200 ms, 92 % removed before, 100,000 a second; add, remove "
                "and expire: timeouts of 10 ms to 60 s.",
            ),
        ),
        patience=60.0,
    )


def measure(size: int, spread: Sequence[int], completed: Sequence[int]) -> Sample:
    """Microseconds per task of each kind of work."""
    gc.collect()
    gc.disable()
    try:
        wheel = TimingWheel(size, START)
        tasks = [TimerTask() for _ in spread]
        add = _timed(lambda: _add(wheel, tasks, spread))
        remove = _timed(lambda: _remove(wheel, tasks))
        _add(wheel, tasks, spread)
        expire = _timed(lambda: _expire(wheel))
        load = _timed(lambda: _load(wheel, tasks, completed))
    finally:
        gc.enable()
    if len(wheel):
        raise AssertionError(f"{wheel!r} should be empty")
    return {"load_us": load, "add_us": add, "remove_us": remove, "expire_us": expire}


def _timed(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) / TASKS * 1e6


def _add(wheel: TimingWheel, tasks: Sequence[TimerTask], timeouts: Sequence[int]) -> None:
    """All of them, while time passes."""
    for first in range(0, TASKS, PER_TICK):
        now = wheel.now + 1
        wheel.advance(now, 0)
        added = slice(first, first + PER_TICK)
        for task, timeout in zip(tasks[added], timeouts[added], strict=True):
            wheel.add(task, now + timeout)


def _remove(wheel: TimingWheel, tasks: Sequence[TimerTask]) -> None:
    for task in tasks:
        wheel.remove(task)


def _expire(wheel: TimingWheel) -> None:
    """All of them, from one occupied slot to the next, as the timer does."""
    while (now := wheel.next_expiration()) is not None:
        wheel.advance(now, BATCH)


def _load(wheel: TimingWheel, tasks: Sequence[TimerTask], completed: Sequence[int]) -> None:
    """Add some in each tick, remove those that complete in it, let the others expire."""
    removed: list[list[TimerTask]] = [[] for _ in range(TASKS // PER_TICK + TIMEOUT + 1)]
    for tick in range(len(removed)):
        now = wheel.now + 1
        wheel.advance(now)
        added = slice(tick * PER_TICK, (tick + 1) * PER_TICK)
        for task, after in zip(tasks[added], completed[added], strict=True):
            wheel.add(task, now + TIMEOUT)
            if after < TIMEOUT:
                removed[tick + after].append(task)
        for task in removed[tick]:
            wheel.remove(task)


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    command_line("python -m benchmarks.wheel_size", __doc__ or "", "").parse_args(arguments)
    console = tables.console()
    tables.introduce(console, "no loop", (build(),), REPETITIONS)
    for answer in ask_all([wheel_size()], REPETITIONS, console):
        tables.show(answer, console)


if __name__ == "__main__":
    main(sys.argv[1:])
