"""The builds of purgatory's core, and the environment in which a process imports one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import purgatory
from benchmarks.harness.benchmark import Build

ROOT = Path(__file__).resolve().parents[2]
# `make` puts the compiled core here, with a copy of the rest of the package.
COMPILED = ROOT / "build" / "compiled"


def available_builds() -> tuple[Build, ...]:
    """The interpreted build, after the compiled one where `make` has built it."""
    program = "import purgatory; raise SystemExit(not purgatory.COMPILED)"
    command, variables = [sys.executable, "-c", program], environment("compiled")
    failed = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, check=False).returncode
    return ("interpreted",) if failed else ("compiled", "interpreted")


def imported_build() -> Build:
    """The build that this process has imported."""
    return "compiled" if purgatory.COMPILED else "interpreted"


def environment(build: Build) -> Mapping[str, str]:
    """The environment variables of a process that imports this build."""
    ours = {ROOT, COMPILED}
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    path = [entry for entry in path if Path(entry).resolve() not in ours]
    first = [str(COMPILED), str(ROOT)] if build == "compiled" else [str(ROOT)]
    required = "1" if build == "compiled" else "0"
    return {
        **os.environ,
        "PURGATORY_REQUIRE_COMPILED": required,
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(first + path),
    }
