"""The builds of purgatory's core, and the environment in which a process imports one of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from benchmarks.harness.benchmark import Build

ROOT = Path(__file__).resolve().parents[2]
# `make` puts the compiled core here, with a copy of the rest of the package.
COMPILED = ROOT / "build" / "compiled"


def available_builds() -> tuple[Build, ...]:
    """The interpreted build, after the compiled one where `make` has built it for this Python."""
    compiled = any(COMPILED.glob(f"*{EXTENSION_SUFFIXES[0]}"))
    return ("compiled", "interpreted") if compiled else ("interpreted",)


def environment(build: Build) -> Mapping[str, str]:
    """The environment variables of a process that imports this build: the first of the path counts."""
    first = [str(COMPILED), str(ROOT)] if build == "compiled" else [str(ROOT)]
    return {
        **os.environ,
        "PURGATORY_REQUIRE_COMPILED": "1" if build == "compiled" else "0",
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [*first, os.environ.get("PYTHONPATH")])),
    }
