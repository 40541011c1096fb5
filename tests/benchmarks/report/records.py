"""Small records, as the benchmarks and the load test write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def contender(section: str, name: str, *samples: Mapping[str, float]) -> Record:
    """One that was measured as often as it has samples."""
    return {
        "section": section,
        "name": name,
        "build": None,
        "reference": "purgatory",
        "samples": [dict(sample) for sample in samples],
    }


def column(metric: str, heading: str, spread: bool = True) -> Record:
    """One column of a table."""
    return {"metric": metric, "heading": heading, "spread": spread}


def question(contenders: Sequence[Record], *columns: Record, name: str = "one-key") -> Record:
    """A question with one table."""
    return {
        "name": name,
        "summary": "cost of a wait",
        "tables": [{"title": "A wait: microseconds each", "columns": list(columns), "note": "10 | key."}],
        "contenders": list(contenders),
    }


def parked() -> Record:
    """Two sections; in them something dearer than purgatory, something cheaper, something not measured."""
    return question(
        [
            contender("callbacks", "purgatory", {"us": 1.0, "park_us": 0.6}, {"us": 2.0, "park_us": 1.2}),
            contender("callbacks", "Future", {"us": 4.0, "park_us": 2.0}, {"us": 6.0, "park_us": 3.0}),
            contender("callbacks", "bare", {"us": 0.25, "park_us": 0.1}, {"us": 0.5, "park_us": 0.1}),
            contender("tasks", "purgatory", {"us": 10.0}),
            contender("tasks", "wait_for(event.wait(), t)", {"us": 30.0}),
            contender("tasks", "not for this", {}),
        ],
        column("us", "total"),
        column("park_us", "park", spread=False),
    )


def run(*questions: Record, loop: str = "asyncio", load: Record | None = None) -> Record:
    """A whole record."""
    record: Record = {
        "written": "2026-11-21T16:08:46+00:00",
        "commit": "63f087b",
        "loop": loop,
        "repetitions": 2,
        "machine": {"processor": "EPYC", "cores": 2, "memory_bytes": 24 * 2**30, "system": "Linux-6.1"},
        "python": "3.11.7 (main, May  9 2026) [GCC 12.2.0]",
        "packages": {"anyio": "4.16.0", "uvloop": None, "purgatory": "0.1.0"},
    }
    if questions or load is None:
        record |= {"questions": list(questions), "full": True}
    if load is not None:
        record["load"] = load
    return record


def point(
    target: float, achieved: Sequence[float], saturated: bool = False, **figures: Sequence[float]
) -> Record:
    """One target rate of the load test."""
    return {"target": target, "achieved": list(achieved), "saturated": saturated} | {
        metric: list(measured) for metric, measured in figures.items()
    }


def curve(design: str, build: str, *points: Record) -> Record:
    """One design under load."""
    return {"design": design, "build": build, "points": list(points)}


def load(*curves: Record) -> Record:
    """A load test with one distribution, without Kafka's own."""
    distribution = {
        "name": "p50/p75 20/60 ms",
        "p50_ms": 20.0,
        "p75_ms": 60.0,
        "timeout_ms": 200.0,
        "keys": 3,
    }
    generator = curve("the generator alone", "interpreted", point(1_000, [1_000], cpu_seconds=[0.5]))
    return {
        "distributions": [distribution | {"curves": list(curves), "generator": generator}],
        "seconds": 2.0,
        "kafka": {"available": False, "reason": "there is no java here"},
    }


def saturating() -> Record:
    """One design that keeps up, and two that do not."""
    return load(
        curve(
            "purgatory",
            "compiled",
            point(1_000, [1_000, 990], held=[0, 0], late_p99_ms=[1, 2]),
            point(2_000, [2_000, 1_990], held=[0, 0], late_p99_ms=[20, 30]),
        ),
        curve(
            "purgatory",
            "interpreted",
            point(1_000, [1_000, 990]),
            point(2_000, [1_500, 1_400], saturated=True),
        ),
        curve(
            "Kafka 0.8's design",
            "interpreted",
            point(1_000, [500, 600], saturated=True, held=[7, 9], late_p99_ms=[]),
        ),
    )


def write(directory: Path, record: object, name: str = "run.json") -> Path:
    """The record in a file."""
    file = directory / name
    file.write_text(json.dumps(record))
    return file
