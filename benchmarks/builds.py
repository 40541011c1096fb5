"""The builds of purgatory's core that can be measured here, and how a process comes to have one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import purgatory
from benchmarks.question import Build

ROOT = Path(__file__).resolve().parent.parent
# Where `make` puts the compiled core, with a copy of the rest of the package.
COMPILED = ROOT / "build" / "compiled"


def builds_at_hand() -> tuple[Build, ...]:
    """The interpreted one, and the compiled one where `make` has built it."""
    built = subprocess.run(
        [sys.executable, "-c", "import purgatory; raise SystemExit(not purgatory.COMPILED)"],
        cwd=ROOT,
        env=environment("compiled"),
        capture_output=True,
        check=False,
    )
    return ("interpreted",) if built.returncode else ("compiled", "interpreted")


def build() -> Build:
    """The one that this process has imported."""
    return "compiled" if purgatory.COMPILED else "interpreted"


def environment(build: Build) -> Mapping[str, str]:
    """The environment variables of a process that is to import this build."""
    ours = {ROOT, COMPILED}
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    path = [entry for entry in path if Path(entry).resolve() not in ours]
    first = [str(COMPILED), str(ROOT)] if build == "compiled" else [str(ROOT)]
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(first + path)}
