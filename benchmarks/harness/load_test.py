"""The results of the load test: designs at ever higher rates, until they saturate."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import takewhile
from typing import Any, Self

# The part of the target rate below which a design counts as saturated, and how far behind, in milliseconds.
ACHIEVED = 0.95
BEHIND_MS = 100.0
# A design is not measured further after so many rates in a row that saturate it: one may be the machine's
# fault.
ENOUGH = 2


@dataclass(frozen=True)
class Measurement:
    """The figures of one run under load; None where the design does not tell them."""

    # Requests per second, from the start to the end of the last one; without the time that the plan has
    # between the last arrival and that end.
    achieved: float
    # Milliseconds by which the last arrival came later than planned.
    behind_ms: float
    sent: int
    completed: int | None = None
    expired: int | None = None
    # The processor time of the whole process in the run.
    cpu_seconds: float | None = None
    # How much later than their timeout requests expired; None where none expired.
    late_p50_ms: float | None = None
    late_p99_ms: float | None = None
    # The entries in the watch lists when the last request had ended.
    held: int | None = None
    # The growth of the process at its largest, in MB of a million bytes.
    rss_mb: float | None = None


METRICS = tuple(each.name for each in fields(Measurement))


@dataclass(frozen=True)
class Point:
    """A design under one load. Each metric has the figures of the repetitions that measured it."""

    target: float
    figures: dict[str, list[float]] = field(default_factory=lambda: {metric: [] for metric in METRICS})

    def add(self, measurement: Measurement) -> None:
        """Add a repetition."""
        for metric, figure in asdict(measurement).items():
            if figure is not None:
                self.figures[metric].append(figure)

    @property
    def saturated(self) -> bool:
        """Whether the design could not keep up, by the medians."""
        achieved, behind = (statistics.median(self.figures[metric]) for metric in ("achieved", "behind_ms"))
        return achieved < ACHIEVED * self.target or behind > BEHIND_MS

    def to_json(self) -> Mapping[str, object]:
        """The point as it is recorded."""
        return {"target": self.target, "saturated": self.saturated, **self.figures}

    @classmethod
    def from_json(cls, point: Mapping[str, Any]) -> Self:
        """The point that was recorded."""
        return cls(point["target"], {metric: list(point[metric]) for metric in METRICS})


@dataclass(frozen=True, eq=False)
class Curve:
    """A design in one build, with a point for each rate that it was measured at."""

    design: str
    build: str
    points: list[Point] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        """Whether higher rates need no measurement."""
        last = self.points[-ENOUGH:]
        return len(last) == ENOUGH and all(point.saturated for point in last)

    @property
    def saturated_at(self) -> float | None:
        """The lowest rate that saturates the design; None where it keeps up with all."""
        return next((point.target for point in self.points if point.saturated), None)

    @property
    def kept_up_to(self) -> float | None:
        """The highest rate below that one; None where the design never keeps up."""
        below = takewhile(lambda point: not point.saturated, self.points)
        return max((point.target for point in below), default=None)

    def at(self, target: float) -> Point | None:
        """The point for a rate; None when it was not measured there."""
        return next((point for point in self.points if point.target == target), None)

    def to_json(self) -> Mapping[str, object]:
        """The curve as it is recorded."""
        return {**vars(self), "points": [point.to_json() for point in self.points]}

    @classmethod
    def from_json(cls, curve: Mapping[str, Any]) -> Self:
        """The curve that was recorded."""
        points = sorted(map(Point.from_json, curve["points"]), key=lambda point: point.target)
        return cls(curve["design"], curve["build"], points)


@dataclass(frozen=True)
class Sweep:
    """All designs with one distribution of the times to completion, and the generator without any design."""

    name: str
    p50_ms: float
    p75_ms: float
    timeout_ms: float
    keys: int
    curves: Sequence[Curve]
    generator: Curve

    def label(self, curve: Curve) -> str:
        """The design's name, with its build where there are several."""
        builds = Counter(other.design for other in self.curves)
        return f"{curve.design}, {curve.build}" if builds[curve.design] > 1 else curve.design

    def to_json(self) -> Mapping[str, object]:
        """The sweep as it is recorded."""
        curves = [curve.to_json() for curve in self.curves]
        return {**vars(self), "curves": curves, "generator": self.generator.to_json()}

    @classmethod
    def from_json(cls, sweep: Mapping[str, Any]) -> Self:
        """The sweep that was recorded."""
        curves = list(map(Curve.from_json, sweep["curves"]))
        return cls(**{**sweep, "curves": curves, "generator": Curve.from_json(sweep["generator"])})


@dataclass(frozen=True)
class LoadTest:
    """All sweeps. In each, requests arrive for so many seconds at each rate."""

    seconds: float
    sweeps: Sequence[Sweep]
    # Why Kafka's own test was not measured; None where it was.
    kafka_missing: str | None

    def to_json(self) -> Mapping[str, object]:
        """The test as it is recorded."""
        kafka = {"available": self.kafka_missing is None, "reason": self.kafka_missing}
        sweeps = [sweep.to_json() for sweep in self.sweeps]
        return {"seconds": self.seconds, "distributions": sweeps, "kafka": kafka}

    @classmethod
    def from_json(cls, load: Mapping[str, Any]) -> Self:
        """The test that was recorded."""
        sweeps = list(map(Sweep.from_json, load["distributions"]))
        return cls(load["seconds"], sweeps, None if load["kafka"]["available"] else load["kafka"]["reason"])
