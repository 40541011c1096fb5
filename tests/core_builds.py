"""Builds of the core for tests that look into the interpreter's memory, and runs of tests on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def build_core(into: Path, *, python: str = sys.executable, **environment: str) -> Path:
    """Compile the core for `python` in the directory `into`. Returns the import path of the build."""
    for name in ["pyproject.toml", "setup.py", "README.md"]:
        shutil.copy(ROOT / name, into)
    shutil.copytree(ROOT / "purgatory", into / "purgatory", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        [python, "setup.py", "--quiet", "build", "--build-base", "temporary", "--build-lib", "compiled"],
        cwd=into,
        env={**os.environ, "PURGATORY_REQUIRE_COMPILED": "1", **environment},
        check=True,
    )
    return into / "compiled"


def run_tests(
    path: Sequence[Path | str],
    tests: list[str],
    *,
    marked: str = "not slow and not long",
    python: str = sys.executable,
    **environment: str,
) -> None:
    """Run those of `tests` that are `marked` so, in a process with the import path `path`. All must pass."""
    # Pytest tells its workers what they are in variables, which are not meant for the inner run.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own = {
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PURGATORY_REQUIRE_COMPILED": "1",
        "HYPOTHESIS_PROFILE": "fast",
    }
    # What a process says at its abnormal end is lost where pytest captures the file of standard error.
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--capture=sys", "--timeout", "600"]
    done = subprocess.run(
        [*command, "-m", marked, *tests],
        cwd=ROOT,
        env={**inherited, **own, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    assert " passed" in done.stdout
