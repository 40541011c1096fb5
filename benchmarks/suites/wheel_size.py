"""The wheel size that measures best.

Small wheels need more levels, and a task sinks through each of them before it expires. Large wheels keep
their occupied slots in integers too large for a machine word.
"""

import math
import random
import time
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.harness.benchmark import Case, Parts, Sample, Setting, Table, benchmark, spreads
from benchmarks.harness.event_loop import CollectorSetting
from purgatory import TimerTask, TimingWheel

# The default comes first: the others are set in relation to it.
WHEEL_SIZES = (60, 16, 20, 32, 100, 128, 256, 512, 1024)
PER_TICK = 100
# No wheel starts at the beginning of a level.
START = 1_234_567
# The tasks that the timer takes out at a time.
BATCH = 16
# As many between 10 and 20 ms as between 30 and 60 s.
SHORTEST, LONGEST = 10, 60_000
# The load of the design note for Kafka's timing wheel: completions after 20 ms (median) and 60 ms (third
# quartile), log-normal, with a timeout of 200 ms, which 8 % of them reach.
TIMEOUT = 200
COMPLETED = (math.log(20), math.log(60 / 20) / 0.6745)


@benchmark("wheel-size", "wheel sizes", (100_000,), time_limit=60.0)
def wheel_size(setting: Setting) -> Parts:
    """The first size is the number of tasks."""
    yield Table(
        "A timing wheel: microseconds per task",
        spreads(load_us="typical load", add_us="add", remove_us="remove", expire_us="expire"),
        "Typical load: timeouts of 200 ms, 92 % removed before, 100,000 a second; add, remove "
        "and expire: timeouts of 10 ms to 60 s.",
    )
    for size in WHEEL_SIZES:
        yield Case("wheel size", str(size), partial(measure, size, setting.sizes[0]), setting.builds[0])


def measure(size: int, count: int) -> Sample:
    """Microseconds per task of each kind of work."""
    choice = random.Random(1)
    spread = [round(SHORTEST * (LONGEST / SHORTEST) ** choice.random()) for _ in range(count)]
    completed = [min(TIMEOUT, round(choice.lognormvariate(*COMPLETED))) for _ in range(count)]

    def timed(work: Callable[[], None]) -> float:
        start = time.process_time()
        work()
        return (time.process_time() - start) / count * 1e6

    with CollectorSetting.OFF.applied():
        wheel = TimingWheel(size, START)
        tasks = [TimerTask() for _ in spread]
        add = timed(lambda: _add(wheel, tasks, spread))
        remove = timed(lambda: _remove(wheel, tasks))
        _add(wheel, tasks, spread)
        expire = timed(lambda: _expire(wheel))
        load = timed(lambda: _load(wheel, tasks, completed))
    if len(wheel):
        raise AssertionError(f"{wheel!r} should be empty")
    return {"load_us": load, "add_us": add, "remove_us": remove, "expire_us": expire}


def _add(wheel: TimingWheel, tasks: Sequence[TimerTask], timeouts: Sequence[int]) -> None:
    for first in range(0, len(tasks), PER_TICK):
        now = wheel.now + 1
        wheel.advance(now, 0)
        added = slice(first, first + PER_TICK)
        for task, timeout in zip(tasks[added], timeouts[added], strict=True):
            wheel.add(task, now + timeout)


def _remove(wheel: TimingWheel, tasks: Sequence[TimerTask]) -> None:
    for task in tasks:
        wheel.remove(task)


def _expire(wheel: TimingWheel) -> None:
    """Expire all tasks, from one occupied slot to the next, as the timer does."""
    while (now := wheel.next_expiration()) is not None:
        wheel.advance(now, BATCH)


def _load(wheel: TimingWheel, tasks: Sequence[TimerTask], completed: Sequence[int]) -> None:
    """Add tasks in each tick, remove those that complete in it, let the others expire."""
    removed: list[list[TimerTask]] = [[] for _ in range(-(-len(tasks) // PER_TICK) + TIMEOUT + 1)]
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
