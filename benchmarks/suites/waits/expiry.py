"""Waits that all expire, over a second or at once: how late they are, and how long the loop is held."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

from benchmarks.designs import OLDER_DESIGNS, callbacks, tasks
from benchmarks.designs.alternative import CALLBACK, TURNS_TO_PARK, Tally, WaitAlternative, targets
from benchmarks.designs.purgatory_waits import PurgatoryCallback, PurgatoryTask
from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark, medians, spreads
from benchmarks.harness.event_loop import CollectorPauses, CollectorSetting, Heartbeat, run, turns

CALLBACKS: tuple[type[WaitAlternative], ...] = (
    PurgatoryCallback, callbacks.FutureCallback, callbacks.TimedCallback, *OLDER_DESIGNS,
)  # fmt: skip
TASKS: tuple[type[WaitAlternative], ...] = (
    PurgatoryTask, tasks.CallLaterFuture, tasks.TimeoutFuture, tasks.WaitForEvent, tasks.MoveOnAfterEvent,
)  # fmt: skip
# At one instant.
FEW: tuple[type[WaitAlternative], ...] = (PurgatoryCallback, callbacks.TimedCallback)


# The time limits are five times the time of the fast alternatives with a million.
@benchmark("expiry", "timeouts spread over one second", (100_000,), (100_000, 1_000_000), time_limit=35.0)
def expiry(setting: Setting) -> Parts:
    """Tasks are measured in a full run only, and only at the first size."""
    yield Table(
        "n timeouts spread evenly over one second: milliseconds late",
        spreads(late_p99_ms="p99")
        + medians(late_p50_ms="p50", late_max_ms="max", stall_ms="stall", expired_per_s="expired/s"),
        "Lateness against each wait's own deadline; the worst stall of a task that beats each "
        "millisecond; expired per second from the first deadline until nothing was left. Unless "
        "the section says that it is on, the collector is set as the README advises. Slow cases are "
        "measured fewer times.",
    )
    advised, default = CollectorSetting.ADVISED, CollectorSetting.DEFAULT
    sections = [(CALLBACKS, size, advised) for size in setting.sizes]
    if setting.full:
        sections += [(CALLBACKS, setting.sizes[0], default), (TASKS, setting.sizes[0], advised)]
    for alternatives, size, collector in sections:
        style = alternatives[0].style
        suffix = "" if collector is advised else f", {collector.value}"
        yield from setting.cases(
            f"{style}{suffix}, n = {size:,}",
            alternatives,
            partial(lateness, setting, size, collector),
            interpreted=style == CALLBACK,
        )


@benchmark("one-instant", "timeouts due at one instant", (100_000,), (100_000, 1_000_000), time_limit=30.0)
def one_instant(setting: Setting) -> Parts:
    yield Table(
        "n timeouts due at one instant: worst stall of the loop, milliseconds",
        spreads(stall_apart_ms="but collector")
        + medians(stall_ms="all", stall_busy_ms="working")
        + medians(pause_total_ms="collector", expired_per_s="expired/s"),
        "Of a task that beats each millisecond; 'but collector' leaves out its pauses. "
        "'Working' is the most processor time that the loop itself used between two beats: what is "
        "above that, the machine spent on something else. 'Collector' are all its pauses.",
    )
    advised = CollectorSetting.ADVISED
    alternatives = {advised: (*FEW, *OLDER_DESIGNS)}
    if setting.full:
        # The control: whether the collector holds the loop.
        alternatives |= {CollectorSetting.DEFAULT: FEW, CollectorSetting.OFF: FEW}
    for size, collector in product(setting.sizes, alternatives):
        yield from setting.cases(
            f"{collector.value}, n = {size:,}",
            alternatives[collector],
            partial(stalls, setting, size, collector),
            interpreted=collector is advised,
        )


class Lateness(Tally):
    """Records how late each wait expired, in seconds."""

    __slots__ = ("deadlines", "lateness")

    def __init__(self, deadlines: Sequence[float]) -> None:
        super().__init__()
        # By request, in time.monotonic()'s seconds: uvloop's own clock has only whole milliseconds.
        self.deadlines = deadlines
        self.lateness: list[float] = []

    def expire(self, request: int) -> None:
        self.lateness.append(time.monotonic() - self.deadlines[request])
        self.expired += 1


def lateness(
    setting: Setting, size: int, collector: CollectorSetting, alternative: type[WaitAlternative]
) -> Sample:
    """Lateness in milliseconds, the loop's worst stall, and the rate of expirations."""
    offsets = [setting.seconds * count / size for count in range(size)]
    tally, heartbeat, _, seconds = let_expire(setting, alternative, offsets, collector, Lateness)
    late = tally.lateness
    hundredths = statistics.quantiles(late, n=100)
    return {
        "late_p50_ms": hundredths[49] * 1e3,
        "late_p99_ms": hundredths[98] * 1e3,
        "late_max_ms": max(late) * 1e3,
        "early": sum(each < 0 for each in late),
        "stall_ms": heartbeat.worst * 1e3,
        "expired_per_s": size / seconds,
    }


def stalls(
    setting: Setting, size: int, collector: CollectorSetting, alternative: type[WaitAlternative]
) -> Sample:
    """Stalls and pauses in milliseconds, and the rate of expirations."""
    at_once = [0.0] * size
    _, heartbeat, pauses, seconds = let_expire(setting, alternative, at_once, collector, lambda _: Tally())
    return {
        "stall_ms": heartbeat.worst * 1e3,
        "stall_apart_ms": heartbeat.worst_apart * 1e3,
        "stall_busy_ms": heartbeat.worst_busy * 1e3,
        "expired_per_s": size / seconds,
        "pause_total_ms": pauses.total * 1e3,
    }


# The tally, and what was seen from the first deadline until nothing was left, which took so many seconds.
Observed = tuple[Any, Heartbeat, CollectorPauses, float]


class TooLate(Exception):
    """The first deadline came so many seconds before all were parked."""


def let_expire(
    setting: Setting,
    alternative: type[WaitAlternative],
    offsets: Sequence[float],
    collector: CollectorSetting,
    tally_for: Callable[[Sequence[float]], Tally],
) -> Observed:
    """Let one wait for each offset expire, ten on a key, at the first deadline plus its offset in seconds.

    `tally_for` makes the tally from the deadlines, in time.monotonic().
    """
    # Enough for the fast designs. The others begin again.
    lead = 0.1 + 4e-6 * len(offsets)
    while True:
        try:
            with collector.applied():
                return run(setting.loop, _attempt, alternative, offsets, collector, lead, tally_for)
        except TooLate as late:
            lead = 2 * (lead + late.args[0])


async def _attempt(
    alternative_type: type[WaitAlternative],
    offsets: Sequence[float],
    collector: CollectorSetting,
    lead: float,
    tally_for: Callable[[Sequence[float]], Tally],
) -> Observed:
    watched = targets(len(offsets), 1)
    first = time.monotonic() + lead
    deadlines = [first + offset for offset in offsets]
    tally, heartbeat, pauses = tally_for(deadlines), Heartbeat(), CollectorPauses()
    async with alternative_type(tally) as alternative:
        alternative.park(range(len(deadlines)), watched, _timeouts(deadlines, collector))
        await turns(TURNS_TO_PARK)
        if collector is not CollectorSetting.OFF:
            gc.enable()
        missed = time.monotonic() - first
        if missed > 0:
            # Tasks that are abandoned here would complain when the loop is closed.
            alternative.loop.set_exception_handler(lambda _loop, _context: None)
            raise TooLate(missed)
        with pauses.watched():
            await heartbeat.until(lambda: tally.expired == len(deadlines), pauses)
        seconds = time.monotonic() - first
    if tally.completed:
        raise AssertionError(f"{alternative.name}: {tally.completed} waits completed instead of expiring")
    return tally, heartbeat, pauses, seconds


def _timeouts(deadlines: Sequence[float], collector: CollectorSetting) -> Iterator[float]:
    """The time left until each deadline, by the clock at the moment when the timeout is asked for.

    A collection between that moment and the one when the alternative reads the clock would count as lateness.
    So a collection that has become due happens here: at the allocation of a container, with the collector on
    for just that moment. The generator leaves the collector off.
    """
    for deadline in deadlines:
        if collector is not CollectorSetting.OFF:
            gc.enable()
            _due: set[object] = set()
            gc.disable()
        yield deadline - time.monotonic()
