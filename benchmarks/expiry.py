"""Timeouts spread over a second: how late each wait hears of its own."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks.collector_setting import CollectorSetting
from benchmarks.constructs import ONE_KEY_AWAITED, ONE_KEY_CALLBACK, Construct, Style, Tally
from benchmarks.constructs.asyncio_tasks import BareFuture
from benchmarks.constructs.callbacks import BareCallback
from benchmarks.constructs.purgatory_waits import OperationsAlone
from benchmarks.expiring import Expiring
from benchmarks.question import Column, Contender, Question, Sample, Table
from benchmarks.setting import Setting

NEVER_EXPIRE = (BareCallback, BareFuture, OperationsAlone)


class Lateness(Tally):
    """Notes how late each wait heard of its timeout, in seconds."""

    __slots__ = ("deadlines", "lateness")

    def __init__(self, deadlines: Sequence[float]) -> None:
        super().__init__()
        # By request, in time.monotonic()'s seconds: uvloop's own time knows only whole milliseconds.
        self.deadlines = deadlines
        self.lateness: list[float] = []

    def expire(self, request: int) -> None:
        self.lateness.append(time.monotonic() - self.deadlines[request])
        self.expired += 1


def expiry(setting: Setting, numbers: Sequence[int]) -> Question:
    """The question. Tasks are asked in a full run alone, and only about the first of the numbers."""
    callbacks = [construct for construct in ONE_KEY_CALLBACK if construct not in NEVER_EXPIRE]
    advised, default = CollectorSetting.ADVISED, CollectorSetting.DEFAULT
    contenders = [
        contender for number in numbers for contender in _contenders(setting, callbacks, number, advised)
    ]
    if setting.full:
        contenders += _contenders(setting, callbacks, numbers[0], default)
        awaited = [construct for construct in ONE_KEY_AWAITED if construct not in NEVER_EXPIRE]
        contenders += _contenders(setting, awaited, numbers[0], advised)
    return Question(
        name="expiry",
        summary="timeouts spread over one second",
        contenders=tuple(contenders),
        tables=(
            Table(
                title="n timeouts spread evenly over one second: milliseconds late",
                columns=(
                    Column("late_p99_ms", "p99"),
                    Column("late_p50_ms", "p50", spread=False),
                    Column("late_max_ms", "max", spread=False),
                    Column("stall_ms", "stall", spread=False),
                    Column("expired_per_s", "expired/s", spread=False),
                ),
                note="Lateness against each wait's own deadline; the worst stall of a task that beats each "
                "millisecond; expired per second from the first deadline until nothing was left. Unless "
                "it is said to be on, the collector is set as the README advises. The slow ones are measured "
                "fewer times.",
            ),
        ),
        # Five times what the fast ones take with a million.
        patience=35.0,
    )


def _contenders(
    setting: Setting, constructs: Sequence[type[Construct]], number: int, collector: CollectorSetting
) -> Iterator[Contender]:
    def measured(construct: type[Construct]) -> Callable[[], Sample]:
        return lambda: measure(setting.loop, construct, number, collector, setting.seconds)

    suffix = "" if collector is CollectorSetting.ADVISED else f", {collector.value}"
    for construct in constructs:
        yield from setting.contenders(
            f"{construct.style.value}{suffix}, n = {number:,}",
            construct.name,
            measured(construct),
            interpreted=construct.style is Style.CALLBACK,
        )


def measure(
    loop: str, construct: type[Construct], number: int, collector: CollectorSetting, seconds: float
) -> Sample:
    """Lateness in milliseconds, the loop's worst stall, and how many expired in a second."""
    offsets = [seconds * count / number for count in range(number)]
    expiration = Expiring(construct, offsets, collector).expire(loop, Lateness)
    lateness = expiration.tally.lateness
    hundredths = statistics.quantiles(lateness, n=100)
    return {
        "late_p50_ms": hundredths[49] * 1e3,
        "late_p99_ms": hundredths[98] * 1e3,
        "late_max_ms": max(lateness) * 1e3,
        # Negative when it came before the deadline.
        "late_min_ms": min(lateness) * 1e3,
        "stall_ms": expiration.heartbeat.worst * 1e3,
        "collector_ms": expiration.pauses.total * 1e3,
        "expired_per_s": number / expiration.seconds,
    }
