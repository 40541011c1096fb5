"""Keeps all samples of a run as JSON, with what is needed to judge them."""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import purgatory
from benchmarks.harness.benchmark import Build, Column, Result, Row, Setting, Table
from benchmarks.harness.processes import ROOT

PACKAGES = (
    "anyio", "asyncpg", "broadcaster", "channels-redis", "duckdb", "nats-py", "opentelemetry-sdk", "pyarrow",
    "pyspark", "redis", "uvicorn", "uvloop",
)  # fmt: skip


@dataclass
class Run:
    """The measurements of one run, and what is needed to judge them. Records have the same fields."""

    # When the run began; when it ended in older records.
    written: str
    # None outside of a checkout.
    commit: str | None
    loop: str
    full: bool
    repetitions: int
    machine: Mapping[str, Any]
    python: str
    # Those that are installed, with their versions.
    packages: Mapping[str, str]
    # The load test's record does not tell the builds, the other older ones not the seconds.
    builds: Sequence[Build] = ()
    seconds: float | None = None
    benchmarks: list[Result] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write the run, as far as it has come."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def new_run(setting: Setting, repetitions: int) -> Run:
    """A run of this checkout on this machine. Nothing has been measured yet."""
    # The commit that is checked out, marked where the tree differs from it.
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    described = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    installed = {each.name: each.version for each in importlib.metadata.distributions()}
    packages = {name: installed[name] for name in PACKAGES if name in installed}
    return Run(
        written=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=described.stdout.strip() or None,
        loop=setting.loop,
        full=setting.full,
        repetitions=repetitions,
        machine={
            "processor": model[1] if model else platform.machine(),
            "cores": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": platform.platform(),
        },
        python=sys.version,
        packages=packages | {"purgatory": purgatory.__version__},
        builds=setting.builds,
        seconds=setting.seconds,
    )


def read(path: Path) -> Run:
    """The run that was written to `path`. RuntimeError where that is no run."""
    try:
        record = json.loads(path.read_bytes())
        return Run(**record | {"benchmarks": [_result(**each) for each in record["benchmarks"]]})
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RuntimeError(f"{path} is no record of a run: {error!r}") from error


def _result(tables: Sequence[Any], cases: Sequence[Any], **others: str) -> Result:
    read = [Table(**each | {"columns": tuple(Column(**it) for it in each["columns"])}) for each in tables]
    return Result(**others, tables=read, cases=[Row(**case) for case in cases])
