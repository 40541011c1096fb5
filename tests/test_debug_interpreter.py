"""The core on a debug build of the interpreter, which counts all references and checks what it frees."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from purgatory import COMPILED
from tests.core_builds import ROOT, build_core, run_tests

# On Debian the package python3-dbg has it. It imports the packages of this interpreter, too.
DEBUG = shutil.which(f"python{sysconfig.get_python_version()}-dbg")
PACKAGES = sysconfig.get_path("purelib")

# The other tests of the core take many minutes on a debug interpreter. AddressSanitizer watches those.
CHAINS = [
    "tests/core/test_reference_counts.py::test_chains_of_observed_operations_are_freed_without_harm",
]

# It prints by how much the count of all references has grown, without and with an observer.
REFERENCES = """
import gc, sys
from purgatory import COMPILED, DelayedOperation
from purgatory.testing import ManualClock

class Wait(DelayedOperation):
    ready = False

    def try_complete(self):
        return self.ready and self.force_complete()

class Silent:
    def operation_finished(self, purgatory, operation, timing): pass
    def key_checked(self, purgatory, key, tried, completed, at): pass

def run(operations):
    for _ in range(operations // 4):
        completed, expired, cancelled, hastened = (
            held.try_complete_else_watch(Wait(30.0), ["shared", number]) for number in range(4)
        )
        completed.ready = True
        assert held.check_and_complete("shared") == 1
        assert cancelled.cancel()
        assert hastened.reschedule(0)
        clock.advance(31)
        assert expired.expired
    del completed, expired, cancelled, hastened
    gc.collect()

assert COMPILED
for observers in [], [Silent()]:
    clock = ManualClock()
    held = clock.purgatory(observers=observers)
    run(1_000)
    before = sys.gettotalrefcount()
    run(100_000)
    print(sys.gettotalrefcount() - before)
"""


pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(not COMPILED, reason="the interpreted core counts its references right by itself"),
    pytest.mark.skipif(DEBUG is None, reason="there is no debug interpreter of this version"),
]


@pytest.fixture(scope="module")
def debug_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_core(tmp_path_factory.mktemp("debug"), python=str(DEBUG), PYTHONPATH=PACKAGES)


def test_operations_leave_the_count_of_all_references_level(debug_build: Path) -> None:
    printed = subprocess.run(
        [str(DEBUG), "-c", REFERENCES],
        env={"PYTHONSAFEPATH": "1", "PYTHONPATH": f"{debug_build}:{PACKAGES}"},
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    # A reference that each operation of one kind keeps is 25,000 of them.
    assert [abs(int(grown)) < 100 for grown in printed.split()] == [True, True], printed


def test_chains_of_operations_are_freed_without_harm(debug_build: Path) -> None:
    run_tests([debug_build, ROOT, PACKAGES], CHAINS, marked="slow", python=str(DEBUG))
