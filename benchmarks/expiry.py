"""Timeouts spread over a second: how late each wait hears of its own."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.constructs import ONE_KEY_AWAITED, ONE_KEY_CALLBACK, Construct, Key, Tally
from benchmarks.constructs.callbacks import BareCallback
from benchmarks.expiring import Collector, Expiring
from benchmarks.park_and_complete import one_key_targets
from benchmarks.question import Column, Contender, Question, Sample, Table

WAITS = 100_000
SECOND = 1.0


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


def expiry(loop: str) -> Question:
    """The question."""
    targets = one_key_targets(WAITS)
    offsets = [SECOND * number / WAITS for number in range(WAITS)]

    def measured(construct: type[Construct[Key]]) -> Callable[[], Sample]:
        expiring = Expiring(construct, targets, offsets, Collector.ON)
        return lambda: measure(loop, expiring)

    return Question(
        name="expiry",
        summary=f"{WAITS:,} timeouts spread over one second",
        contenders=tuple(
            Contender(construct.style.value, construct.name, measured(construct))
            for constructs in (ONE_KEY_CALLBACK, ONE_KEY_AWAITED)
            for construct in constructs
            if construct is not BareCallback
        ),
        tables=(
            Table(
                title=f"{WAITS:,} timeouts spread evenly over one second: milliseconds late",
                columns=(
                    Column("late_p99_ms", "p99"),
                    Column("late_p50_ms", "p50", spread=False),
                    Column("late_max_ms", "max", spread=False),
                    Column("stall_ms", "worst stall"),
                ),
                note="Lateness against each wait's own deadline; the stall is that of a task that beats each "
                "millisecond. Collector on. The slow ones are measured fewer times.",
            ),
        ),
        patience=8.0,
    )


def measure(loop: str, expiring: Expiring) -> Sample:
    """Lateness in milliseconds, and the loop's worst stall."""
    expiration = expiring.expire(loop, Lateness)
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
    }
