"""The core's own tests on a build that AddressSanitizer watches: none touches memory that is not its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from purgatory import COMPILED
from tests.core_builds import ROOT, build_core, run_tests

# These are the tests whose operations and purgatories go through all of the core. The sanitizer also watches
# the process that one of these files starts for chains of operations.
TESTS = [
    "tests/core/timer",
    "tests/core/test_action_queue.py",
    "tests/core/test_bad_keys.py",
    "tests/core/test_interrupted_parking.py",
    "tests/core/test_failures.py",
    "tests/core/test_observers.py",
    "tests/core/test_operation.py",
    "tests/core/test_promises.py",
    "tests/core/test_purgatory.py",
    "tests/core/test_reference_counts.py",
    "tests/core/test_survival.py",
    "tests/core/test_watchers.py",
    # It collects the garbage of the whole process hundreds of times, which takes minutes on watched memory.
    "--deselect=tests/core/test_interrupted_parking.py::test_what_a_finalizer_does_in_the_middle_of_parking_keeps_the_books_right",
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


@pytest.mark.skipif(sanitizer() is None, reason="gcc has no AddressSanitizer here")
def test_the_tests_of_the_core_touch_no_memory_that_is_not_theirs(tmp_path: Path) -> None:
    build = build_core(tmp_path, CC="gcc", CFLAGS="-fsanitize=address -O1 -g1", LDFLAGS="-fsanitize=address")
    run_tests(
        [build, ROOT],
        TESTS,
        LD_PRELOAD=str(sanitizer()),
        # The interpreter itself keeps memory until the end.
        ASAN_OPTIONS="detect_leaks=0",
        # The interpreter's own allocator hides from the sanitizer where an object ends. The sanitizer
        # does not see what the interpreter itself writes beside an object. The debug hooks find that later.
        PYTHONMALLOC="malloc_debug",
    )
