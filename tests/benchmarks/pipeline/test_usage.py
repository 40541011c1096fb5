"""The usage of a program: all of its processes, until the last has ended."""

from __future__ import annotations

import pytest

from benchmarks.harness import processes
from benchmarks.suites.pipeline import measured

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.slow,
    pytest.mark.skipif(not processes.AVAILABLE, reason="there is no /proc"),
]

BUSY = "import time; until = time.process_time() + 0.5\nwhile time.process_time() < until: pass\n"


def test_time_and_memory_of_a_command_are_its_own() -> None:
    found = measured("-c", f"ballast = bytearray(100 << 20)\n{BUSY}")
    assert found["seconds"] > 0.5
    assert 0.3 < found["processor_seconds"] < 2
    assert 100 < found["rss_mib"] < 200


def test_processes_that_it_leaves_behind_are_waited_for_and_counted() -> None:
    # As Spark's Python leaves the JVM, and the JVM the workers: in process groups of their own.
    child = f"import os; os.setpgid(0, 0)\n{BUSY}{BUSY}"
    found = measured("-c", f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}])")
    assert found["seconds"] > 1
    assert found["processor_seconds"] > 0.6


def test_memory_that_a_fork_shares_with_its_parent_counts_once() -> None:
    found = measured("-c", "import os, time; ballast = bytearray(100 << 20); os.fork(); time.sleep(0.5)")
    assert 100 < found["rss_mib"] < 200


def test_a_failed_command_is_quoted() -> None:
    with pytest.raises(RuntimeError, match=r"(?s) ended with 3:\n.*so that is why"):
        measured("-c", "import sys; print('so that is why', file=sys.stderr); sys.exit(3)")
