"""Many timeouts due at the same instant: how long the loop is held, and by what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.designs import OLDER_DESIGNS
from benchmarks.designs.alternative import Tally, WaitAlternative
from benchmarks.harness.benchmark import Benchmark, Case, Column, Sample, Table, medians
from benchmarks.harness.event_loop import CollectorSetting
from benchmarks.harness.setting import Setting
from benchmarks.suites.waits.callbacks import TimedCallback
from benchmarks.suites.waits.expiration import let_expire
from benchmarks.suites.waits.purgatory_waits import PurgatoryCallback

FEW: tuple[type[WaitAlternative], ...] = (PurgatoryCallback, TimedCallback)


def one_instant(setting: Setting, sizes: Sequence[int]) -> Benchmark:
    """Timeouts at one instant."""
    return Benchmark(
        name="one-instant",
        summary="timeouts due at one instant",
        cases=tuple(_cases(setting, sizes)),
        tables=(
            Table(
                "n timeouts due at one instant: worst stall of the loop, milliseconds",
                (
                    Column("stall_apart_ms", "but collector"),
                    *medians(stall_ms="all", stall_busy_ms="working"),
                    *medians(pause_total_ms="collector", expired_per_s="expired/s"),
                ),
                "Of a task that beats each millisecond; 'but collector' leaves out its pauses. "
                "'Working' is the most processor time that the loop itself used between two beats: what is "
                "above that, the machine spent on something else. 'Collector' are all its pauses.",
            ),
        ),
        # Five times the time of the fast alternatives with a million.
        time_limit=30.0,
    )


def _cases(setting: Setting, sizes: Sequence[int]) -> Iterator[Case]:
    def measured(size: int, collector: CollectorSetting, alternative: type[WaitAlternative]) -> Sample:
        return measure(setting.loop, alternative, size, collector)

    advised = CollectorSetting.ADVISED
    alternatives = {advised: (*FEW, *OLDER_DESIGNS)}
    if setting.full:
        # The control: whether the collector holds the loop.
        alternatives |= {CollectorSetting.DEFAULT: FEW, CollectorSetting.OFF: FEW}
    for size in sizes:
        for collector, measured_with in alternatives.items():
            section, measure_it = f"{collector.value}, n = {size:,}", partial(measured, size, collector)
            yield from setting.cases_of(section, measured_with, measure_it, interpreted=collector is advised)


def measure(loop: str, alternative: type[WaitAlternative], size: int, collector: CollectorSetting) -> Sample:
    """Stalls and pauses in milliseconds, the time to drain in microseconds per timeout and as a rate."""
    expiration = let_expire(loop, alternative, [0.0] * size, collector, lambda _: Tally())
    heartbeat, pauses = expiration.heartbeat, expiration.pauses
    return {
        "stall_ms": heartbeat.worst * 1e3,
        "stall_apart_ms": heartbeat.worst_apart * 1e3,
        "stall_busy_ms": heartbeat.worst_busy * 1e3,
        "drain_us": expiration.seconds / size * 1e6,
        "expired_per_s": size / expiration.seconds,
        "pause_longest_ms": pauses.longest * 1e3,
        "pause_total_ms": pauses.total * 1e3,
    }
