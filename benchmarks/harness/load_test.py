"""The results of the load test: designs at ever higher rates, until they saturate.

A run of one design under load gives a sample with these metrics, as far as the design tells them:

- achieved: requests per second, from the start to the end of the last one; without the time that the plan
  has between the last arrival and that end
- behind_ms: by how much the last arrival came later than planned
- sent, completed, expired: requests
- cpu_seconds: the processor time of the whole process
- late_p50_ms, late_p99_ms: how much later than their timeout requests expired
- held: the entries in the watch lists when the last request had ended
- rss_mb: the growth of the process at its largest, in MB of a million bytes
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any, Self

from benchmarks.harness.benchmark import Sample

# The part of the target rate below which a design counts as saturated, and how far behind, in milliseconds.
ACHIEVED = 0.95
BEHIND_MS = 100.0
# A design is not measured further after so many rates in a row that saturate it: one may be the machine's
# fault.
ENOUGH = 2
# Measured beside the designs: what each of them spends on the load itself.
GENERATOR = "the generator alone"


@dataclass(frozen=True)
class Distribution:
    """Times to completion, log-normal with this median and third quartile. What takes longer expires."""

    p50_ms: float
    p75_ms: float
    timeout_ms: float = 200.0
    # The keys that a request watches.
    keys: int = 3

    @property
    def name(self) -> str:
        """The distribution's name in tables."""
        return f"p50/p75 {self.p50_ms:g}/{self.p75_ms:g} ms"


class Curve(dict[int, list[Sample]]):
    """The samples of a design in all repetitions, by rate, the lowest first."""

    def figures(self, rate: int, metric: str) -> list[float]:
        """One metric in all repetitions at a rate; empty where the design does not tell it."""
        return [sample[metric] for sample in self[rate] if metric in sample]

    def saturated(self, rate: int) -> bool:
        """Whether the design could not keep up with a rate, by the medians."""
        achieved, behind = (statistics.median(self.figures(rate, each)) for each in ("achieved", "behind_ms"))
        return achieved < ACHIEVED * rate or behind > BEHIND_MS

    @property
    def finished(self) -> bool:
        """Whether higher rates need no measurement."""
        return len(self) >= ENOUGH and all(map(self.saturated, list(self)[-ENOUGH:]))

    @property
    def saturated_at(self) -> int | None:
        """The lowest rate that saturates the design; None where it keeps up with all."""
        return next(filter(self.saturated, self), None)

    @property
    def kept_up_to(self) -> int | None:
        """The highest rate below that one; None where the design never keeps up."""
        return max(takewhile(lambda rate: not self.saturated(rate), self), default=None)


@dataclass(frozen=True)
class Sweep:
    """The designs by name, and the generator, with one distribution of the times to completion."""

    distribution: Distribution
    curves: Mapping[str, Curve]

    @property
    def designs(self) -> Mapping[str, Curve]:
        """All but the generator."""
        return {name: curve for name, curve in self.curves.items() if name != GENERATOR}


@dataclass(frozen=True)
class LoadTest:
    """All sweeps. In each, requests arrive for so many seconds at each rate."""

    seconds: float
    sweeps: list[Sweep]

    def to_json(self) -> Mapping[str, object]:
        """The test as it is recorded."""
        return asdict(self)

    @classmethod
    def from_json(cls, load: Mapping[str, Any]) -> Self:
        """The test that was recorded. In JSON all keys are texts."""
        sweeps = []
        for sweep in load["sweeps"]:
            curves = {
                name: Curve((int(rate), samples) for rate, samples in curve.items())
                for name, curve in sweep["curves"].items()
            }
            sweeps.append(Sweep(Distribution(**sweep["distribution"]), curves))
        return cls(load["seconds"], sweeps)
