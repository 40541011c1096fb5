"""The budget of an operation in instructions of the processor, which valgrind counts.

They tell of work inside one call, which the counts of test_budgets.py do not see. They are the same under any
load, but not for any interpreter. Each budget is 3 % above the present count, on one build of CPython.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys

import pytest

from benchmarks.harness.instructions import counted
from purgatory import COMPILED
from tests.core.instructions import ACTS, TIMES

BUDGETS = {"one_key": 10_013, "three_keys": 11_811, "shared_key": 8_223, "heartbeats": 1_534}
COUNTED_ON = ("3.11.7", "GCC 12.2.0")
BUILD = (platform.python_version(), platform.python_compiler())


def test_there_is_a_budget_for_each_act() -> None:
    assert BUDGETS.keys() == ACTS.keys()


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED or BUILD != COUNTED_ON, reason="the budgets are of another build")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind counts the instructions")
def test_each_act_stays_within_its_instructions() -> None:
    command = [sys.executable, "-m", "tests.core.instructions"]
    counts = counted(command, "the acts", env={**os.environ, "PYTHONHASHSEED": "0"})
    # Every second one is of what is between two acts.
    found = {act: count / TIMES for act, count in zip(ACTS, counts[::2], strict=True)}
    for act, budget in BUDGETS.items():
        # Much less means that the program has counted something else.
        assert 0.8 * budget <= found[act] <= budget, found
