"""Keeps all samples of a run as JSON, with what is needed to judge them."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import purgatory
from benchmarks.harness.benchmark import Benchmark, Case, Column, Result, Sample, Table
from benchmarks.harness.builds import ROOT
from benchmarks.harness.load_test import LoadTest
from benchmarks.harness.setting import Setting

PACKAGES = ("anyio", "confluent-kafka", "duckdb", "kio", "pyarrow", "pyspark", "uvicorn", "uvloop")


class RecordError(Exception):
    """Raised when a file holds no record of a run; names the file and the reason."""


@dataclass(frozen=True, eq=False)
class Run:
    """The measurements of one run, and what is needed to judge them."""

    file: Path
    written: str
    # None for a run outside of a checkout.
    commit: str | None
    loop: str
    full: bool
    repetitions: int
    machine: Mapping[str, Any]
    python: str
    # Those that were installed, with their versions.
    packages: Mapping[str, str]
    results: Sequence[Result]
    load: LoadTest | None


def write(
    path: Path, results: Sequence[Result], load: LoadTest | None, setting: Setting, repetitions: int
) -> None:
    """Write the run, as far as it has come, to `path`."""
    record: dict[str, object] = {
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "builds": setting.builds,
        "full": setting.full,
        "loop": setting.loop,
        "repetitions": repetitions,
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": platform.platform(),
        },
        "python": sys.version,
        "packages": {name: _version(name) for name in PACKAGES} | {"purgatory": purgatory.__version__},
        "benchmarks": [_benchmark(result) for result in results],
    }
    if load is not None:
        record["load"] = load.to_json()
    path.write_text(json.dumps(record, indent=1) + "\n")


def read(path: Path) -> Run:
    """The run that was written to `path`. Raises RecordError."""
    try:
        record = json.loads(path.read_bytes(), parse_constant=_refuse)
        return Run(
            file=path,
            written=record["written"],
            commit=record["commit"],
            loop=record["loop"],
            full=record["full"],
            repetitions=record["repetitions"],
            machine=record["machine"],
            # Without the compiler and the date of the build.
            python=record["python"].split()[0],
            packages={name: version for name, version in record["packages"].items() if version},
            results=[_result(benchmark) for benchmark in record["benchmarks"]],
            load=LoadTest.from_json(record["load"]) if "load" in record else None,
        )
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from error
    except KeyError as error:
        raise RecordError(f"{path}: is no record of a run: {error} is missing") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{path}: is no record of a run: {error}") from error


def _commit() -> str | None:
    """The commit that is checked out, marked where the tree differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    described = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return described.stdout.strip() or None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _benchmark(result: Result) -> Mapping[str, object]:
    benchmark = result.benchmark
    return {
        "suite": result.suite,
        "name": benchmark.name,
        "summary": benchmark.summary,
        "tables": [asdict(table) for table in benchmark.tables],
        "cases": [
            {"section": case.section, "name": case.name, "build": case.build, "samples": result.samples[case]}
            for case in benchmark.cases
        ],
    }


def _result(benchmark: Mapping[str, Any]) -> Result:
    samples: dict[Case, Sequence[Sample]] = {}
    for entry in benchmark["cases"]:
        case = Case(entry["section"], entry["name"], _measured_before, entry["build"])
        if case in samples:
            raise ValueError(f"{benchmark['name']} has two cases {case.name!r} in {case.section!r}")
        samples[case] = entry["samples"]
        if not all(math.isfinite(figure) for sample in samples[case] for figure in sample.values()):
            raise ValueError(f"{benchmark['name']}: {case.name} has a figure that is not finite")
    tables = tuple(_table(table) for table in benchmark["tables"])
    name, summary = benchmark["name"], benchmark["summary"]
    return Result(benchmark["suite"], Benchmark(name, summary, tuple(samples), tables, 0.0), samples)


def _table(table: Mapping[str, Any]) -> Table:
    return Table(table["title"], tuple(Column(**column) for column in table["columns"]), table["note"])


def _measured_before() -> Sample:
    raise NotImplementedError


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no figure")
