"""All figures of a run as JSON, with what is needed to judge them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import purgatory
from benchmarks import record
from benchmarks.load.distribution import Distribution
from benchmarks.load.measurement import Measurement, Point
from benchmarks.load.sweep import Curve, Sweep

METRICS = tuple(field.name for field in fields(Measurement))


def write(
    path: Path,
    sweeps: Mapping[Distribution, Sweep],
    *,
    loop: str,
    repetitions: int,
    seconds: float,
    kafka_missing: str | None,
) -> None:
    """Write the run to `path`. `kafka_missing` says why Kafka itself was not measured, if it was not."""
    document = {
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": record.commit(),
        "machine": record.machine(),
        "python": sys.version,
        "packages": _packages(),
        "loop": loop,
        "repetitions": repetitions,
        "load": {
            "seconds": seconds,
            "distributions": [_distribution(*item) for item in sweeps.items()],
            "kafka": {"available": kafka_missing is None, "reason": kafka_missing},
        },
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def _packages() -> Mapping[str, str]:
    installed = [name for name in record.PACKAGES if importlib.util.find_spec(name) is not None]
    versions = {name: importlib.metadata.version(name) for name in installed}
    return versions | {"purgatory": purgatory.__version__}


def _distribution(distribution: Distribution, sweep: Sweep) -> Mapping[str, object]:
    return {
        "name": distribution.name,
        "p50_ms": distribution.p50_ms,
        "p75_ms": distribution.p75_ms,
        "timeout_ms": distribution.timeout_ms,
        "keys": distribution.keys,
        "curves": [_curve(curve) for curve in sweep.curves],
        "generator": _curve(sweep.generator),
    }


def _curve(curve: Curve) -> Mapping[str, object]:
    return {
        "design": curve.contestant.design,
        "build": curve.contestant.build,
        "points": [_point(point) for point in curve.points],
    }


def _point(point: Point) -> Mapping[str, object]:
    """All repetitions of each metric; an empty list where it was not measured."""
    figures: dict[str, Sequence[float]] = {metric: point.figures(metric) for metric in METRICS}
    return {"target": point.rate, "saturated": point.saturated, **figures}
