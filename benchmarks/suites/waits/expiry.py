"""Timeouts spread over a second: how late each wait expires."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from benchmarks.designs import OLDER_DESIGNS
from benchmarks.designs.alternative import Style, Tally, WaitAlternative
from benchmarks.harness.benchmark import Benchmark, Case, Column, Sample, Table, medians
from benchmarks.harness.event_loop import CollectorSetting
from benchmarks.harness.setting import Setting
from benchmarks.suites.waits import callbacks, tasks
from benchmarks.suites.waits.expiration import let_expire
from benchmarks.suites.waits.purgatory_waits import PurgatoryCallback, PurgatoryTask

CALLBACKS: tuple[type[WaitAlternative], ...] = (
    PurgatoryCallback, callbacks.FutureCallback, callbacks.TimedCallback, *OLDER_DESIGNS,
)  # fmt: skip
TASKS: tuple[type[WaitAlternative], ...] = (
    PurgatoryTask, tasks.CallLaterFuture, tasks.TimeoutFuture, tasks.WaitForEvent, tasks.MoveOnAfterEvent,
)  # fmt: skip


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


def expiry(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Timeouts over one second. Tasks are measured in a full run only, and only at the first size."""
    advised, default = CollectorSetting.ADVISED, CollectorSetting.DEFAULT
    cases = [case for size in sizes for case in _cases(setting, CALLBACKS, size, advised)]
    if setting.full:
        cases += _cases(setting, CALLBACKS, sizes[0], default)
        cases += _cases(setting, TASKS, sizes[0], advised)
    return Benchmark(
        name="expiry",
        summary="timeouts spread over one second",
        cases=tuple(cases),
        tables=(
            Table(
                "n timeouts spread evenly over one second: milliseconds late",
                (
                    Column("late_p99_ms", "p99"),
                    *medians(
                        late_p50_ms="p50", late_max_ms="max", stall_ms="stall", expired_per_s="expired/s"
                    ),
                ),
                "Lateness against each wait's own deadline; the worst stall of a task that beats each "
                "millisecond; expired per second from the first deadline until nothing was left. Unless "
                "the section says that it is on, the collector is set as the README advises. Slow cases are "
                "measured fewer times.",
            ),
        ),
        # Five times the time of the fast alternatives with a million.
        time_limit=35.0,
    )


def _cases(
    setting: Setting, alternatives: Sequence[type[WaitAlternative]], size: int, collector: CollectorSetting
) -> tuple[Case, ...]:
    def measured(alternative: type[WaitAlternative]) -> Sample:
        return measure(setting.loop, alternative, size, collector, setting.seconds)

    suffix = "" if collector is CollectorSetting.ADVISED else f", {collector.value}"
    style = alternatives[0].style
    section = f"{style.value}{suffix}, n = {size:,}"
    return setting.cases_of(section, alternatives, measured, interpreted=style is Style.CALLBACK)


def measure(
    loop: str, alternative: type[WaitAlternative], size: int, collector: CollectorSetting, seconds: float
) -> Sample:
    """Lateness in milliseconds, the loop's worst stall, and the rate of expirations."""
    offsets = [seconds * count / size for count in range(size)]
    expiration = let_expire(loop, alternative, offsets, collector, Lateness)
    lateness = expiration.tally.lateness
    hundredths = statistics.quantiles(lateness, n=100)
    return {
        "late_p50_ms": hundredths[49] * 1e3,
        "late_p99_ms": hundredths[98] * 1e3,
        "late_max_ms": max(lateness) * 1e3,
        # Negative when a wait expired before its deadline.
        "late_min_ms": min(lateness) * 1e3,
        "stall_ms": expiration.heartbeat.worst * 1e3,
        "collector_ms": expiration.pauses.total * 1e3,
        "expired_per_s": size / expiration.seconds,
    }
