"""What stands in for designs and their measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.load.contestant import Contestant, Plans
from benchmarks.load.distribution import Load
from benchmarks.load.measurement import Measurement


@dataclass(frozen=True)
class FakeContestant(Contestant):
    """Achieves every rate up to its limit, and takes 5 microseconds a request."""

    limit: float = 1e9
    # What a measurement gives otherwise than usual.
    figures: Mapping[str, float | None] = field(default_factory=dict, hash=False)

    def measure(self, load: Load, plans: Plans) -> Measurement:
        return self.at(load.rate)

    def at(self, rate: int) -> Measurement:
        """The measurement at a rate."""
        usual = Measurement(
            achieved=min(rate, self.limit),
            behind_ms=1.0,
            sent=rate,
            completed=rate - 10,
            expired=10,
            cpu_seconds=rate * 5e-6,
            late_p50_ms=1.0,
            late_p99_ms=12.5,
            held=1234,
            rss_mb=5.6,
        )
        return Measurement(**{**vars(usual), **self.figures})
