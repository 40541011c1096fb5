"""Very many timeouts due at the same instant: for how long the loop is held, and by whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.collector_setting import CollectorSetting
from benchmarks.constructs import OLDER_DESIGNS, Construct, Tally
from benchmarks.constructs.callbacks import TimedCallback
from benchmarks.constructs.purgatory_waits import PurgatoryCallback
from benchmarks.expiring import Expiring
from benchmarks.question import Column, Contender, Question, Sample, Table
from benchmarks.setting import Setting


def one_instant(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question."""
    return Question(
        name="one-instant",
        summary="timeouts due at one instant",
        contenders=tuple(_contenders(setting, numbers)),
        tables=(
            Table(
                title="n timeouts due at one instant: worst stall of the loop, milliseconds",
                columns=(
                    Column("stall_apart_ms", "but collector"),
                    Column("stall_ms", "all", spread=False),
                    Column("stall_busy_ms", "working", spread=False),
                    Column("pause_total_ms", "collector", spread=False),
                    Column("expired_per_s", "expired/s", spread=False),
                ),
                note="Of a task that beats each millisecond; 'but collector' leaves out its pauses. "
                "'Working' is the most processor time that the loop itself used between two beats: what is "
                "above that, the machine spent on something else. 'Collector' are all its pauses.",
            ),
        ),
        # Five times what the fast ones take with a million.
        patience=30.0,
    )


def _contenders(setting: Setting, numbers: Sequence[int]) -> Iterator[Contender]:
    def measured(
        construct: type[Construct], number: int, collector: CollectorSetting
    ) -> Callable[[], Sample]:
        return lambda: measure(setting.loop, construct, number, collector)

    few: tuple[type[Construct], ...] = (PurgatoryCallback, TimedCallback)
    everybody = {CollectorSetting.ADVISED: (*few, *OLDER_DESIGNS)}
    if setting.full:
        # The control, whether it is the collector that holds the loop.
        everybody |= {CollectorSetting.DEFAULT: few, CollectorSetting.OFF: few}
    for number in numbers:
        for collector, constructs in everybody.items():
            for construct in constructs:
                yield from setting.contenders(
                    f"{collector.value}, n = {number:,}",
                    construct.name,
                    measured(construct, number, collector),
                    interpreted=collector is CollectorSetting.ADVISED,
                )


def measure(loop: str, construct: type[Construct], number: int, collector: CollectorSetting) -> Sample:
    """Stalls and pauses in milliseconds, the time to drain in microseconds per timeout and as a rate."""
    expiration = Expiring(construct, [0.0] * number, collector).expire(loop, lambda _: Tally())
    heartbeat, pauses = expiration.heartbeat, expiration.pauses
    return {
        "stall_ms": heartbeat.worst * 1e3,
        "stall_apart_ms": heartbeat.worst_apart * 1e3,
        "stall_busy_ms": heartbeat.worst_busy * 1e3,
        "drain_us": expiration.seconds / number * 1e6,
        "expired_per_s": number / expiration.seconds,
        "pause_longest_ms": pauses.longest * 1e3,
        "pause_total_ms": pauses.total * 1e3,
    }
