"""The core's own tests on a build that AddressSanitizer watches: none touches memory that is not its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from purgatory import COMPILED

ROOT = Path(__file__).parent.parent

# These are the tests whose operations and purgatories go through all of the core, in one process.
TESTS = [
    "tests/timer",
    "tests/test_action_queue.py",
    "tests/test_failures.py",
    "tests/test_observers.py",
    "tests/test_operation.py",
    "tests/test_promises.py",
    "tests/test_purgatory.py",
    "tests/test_watchers.py",
]

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(not COMPILED, reason="there is no compiled core to watch"),
]


def sanitizer() -> str | None:
    """The library of the sanitizer, which comes with gcc. It has to be loaded before the interpreter."""
    if sys.platform != "linux" or shutil.which("gcc") is None:
        return None
    found = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], text=True, stdout=subprocess.PIPE, check=True
    ).stdout.strip()
    return found if os.path.isabs(found) else None


@pytest.fixture
def watched_build(tmp_path: Path) -> Path:
    for name in ["pyproject.toml", "setup.py", "README.md"]:
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "purgatory", tmp_path / "purgatory", ignore=shutil.ignore_patterns("__pycache__"))
    flags = {"CC": "gcc", "CFLAGS": "-fsanitize=address -O1 -g1", "LDFLAGS": "-fsanitize=address"}
    subprocess.run(
        [
            sys.executable,
            "setup.py",
            "--quiet",
            "build",
            "--build-base",
            "temporary",
            "--build-lib",
            "compiled",
        ],
        cwd=tmp_path,
        env={**os.environ, **flags, "PURGATORY_REQUIRE_COMPILED": "1"},
        check=True,
    )
    return tmp_path / "compiled"


@pytest.mark.skipif(sanitizer() is None, reason="gcc has no AddressSanitizer here")
def test_the_tests_of_the_core_touch_no_memory_that_is_not_theirs(watched_build: Path) -> None:
    watched = {
        "LD_PRELOAD": str(sanitizer()),
        # The interpreter itself keeps memory until the end.
        "ASAN_OPTIONS": "detect_leaks=0",
        # The interpreter's own allocator hides from the sanitizer where an object ends.
        "PYTHONMALLOC": "malloc",
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join([str(watched_build), str(ROOT)]),
        "PURGATORY_REQUIRE_COMPILED": "1",
        "HYPOTHESIS_PROFILE": "fast",
    }
    # Pytest tells its workers what they are in variables, which are not meant for the inner run.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--timeout", "600", "-m", "not slow and not long", *TESTS],
        cwd=ROOT,
        env=inherited | watched,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    assert "AddressSanitizer" not in done.stdout
    assert " passed" in done.stdout
