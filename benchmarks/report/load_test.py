"""The load test's outcome: designs side by side, at ever higher rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

from benchmarks.report.document import Value

METRICS = ("achieved", "cpu_seconds", "late_p50_ms", "late_p99_ms", "held", "rss_mb")


@dataclass(frozen=True)
class Point:
    """One target rate, in requests a second, and what it led to."""

    target: float
    # By metric, in the order of the repetitions; a metric that was not measured is not there.
    figures: Mapping[str, tuple[float, ...]]
    saturated: bool


@dataclass(frozen=True)
class Curve:
    """One design, its points by target rate."""

    name: str
    points: tuple[Point, ...]

    @property
    def saturated_at(self) -> float | None:
        """The lowest target rate that it does not keep up with; None where it keeps up with all."""
        return next((point.target for point in self.points if point.saturated), None)

    @property
    def kept_up_to(self) -> float | None:
        """The highest target rate below that; None where it never keeps up."""
        below = takewhile(lambda point: not point.saturated, self.points)
        return max((point.target for point in below), default=None)


@dataclass(frozen=True)
class Distribution:
    """How long requests take to complete, and the designs that were put under that load."""

    name: str
    p50_ms: float
    p75_ms: float
    timeout_ms: float
    keys: int
    curves: tuple[Curve, ...]
    # With no design to offer its requests to.
    generator: Curve


@dataclass(frozen=True)
class LoadTest:
    """All of it."""

    # For so long requests arrive at each rate.
    seconds: float
    distributions: tuple[Distribution, ...]
    # Why Kafka's own test is not among the curves; empty where it is.
    kafka_missing: str


def load_test(load: Value) -> LoadTest:
    """What the file holds under `load`. Raises ReportError when that is something else."""
    kafka = load["kafka"]
    return LoadTest(
        seconds=load["seconds"].number(),
        distributions=tuple(map(_distribution, load["distributions"].items())),
        kafka_missing="" if kafka["available"].flag() else kafka["reason"].text(),
    )


def _distribution(distribution: Value) -> Distribution:
    curves = distribution["curves"].items()
    builds = Counter(curve["design"].text() for curve in curves)
    return Distribution(
        name=distribution["name"].text(),
        p50_ms=distribution["p50_ms"].number(),
        p75_ms=distribution["p75_ms"].number(),
        timeout_ms=distribution["timeout_ms"].number(),
        keys=round(distribution["keys"].number()),
        curves=tuple(_curve(curve, builds[curve["design"].text()] > 1) for curve in curves),
        generator=_curve(distribution["generator"], several_builds=False),
    )


def _curve(curve: Value, several_builds: bool) -> Curve:
    points = sorted(map(_point, curve["points"].items()), key=lambda point: point.target)
    design = curve["design"].text()
    return Curve(f"{design}, {curve['build'].text()}" if several_builds else design, tuple(points))


def _point(point: Value) -> Point:
    figures = {metric: point[metric].numbers() for metric in METRICS if metric in point}
    return Point(
        target=point["target"].number(),
        figures={metric: measured for metric, measured in figures.items() if measured},
        saturated=point["saturated"].flag(),
    )
