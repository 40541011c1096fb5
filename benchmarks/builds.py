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
SOURCES = ROOT / "src"


def builds_at_hand() -> tuple[Build, ...]:
    """The compiled one, if that is what is installed; and the interpreted one, from the source tree."""
    installed = subprocess.run(
        [sys.executable, "-c", "import purgatory; raise SystemExit(not purgatory.COMPILED)"],
        cwd=ROOT,
        env=environment("compiled"),
        capture_output=True,
        check=False,
    )
    return ("interpreted",) if installed.returncode else ("compiled", "interpreted")


def build() -> Build:
    """The one that this process has imported."""
    return "compiled" if purgatory.COMPILED else "interpreted"


def environment(build: Build) -> Mapping[str, str]:
    """The environment variables of a process that is to import this build."""
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    path = [entry for entry in path if Path(entry).resolve() != SOURCES]
    if build == "interpreted":
        path.insert(0, str(SOURCES))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
