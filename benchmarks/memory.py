"""How many bytes a pending wait holds: counted by `memory_probe`, in a fresh process for each figure."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from benchmarks.memory_probe import GROUPS, METHODS, WAITS
from benchmarks.park_and_complete import WAITS_PER_KEY
from benchmarks.question import Column, Contender, Question, Sample, Table


def memory(loop: str) -> Question:
    """The question."""
    return Question(
        name="memory",
        summary="bytes per pending wait",
        contenders=tuple(
            Contender(section, construct.name, _probed(loop, section, construct.name))
            for section, constructs in GROUPS.items()
            for construct in constructs
        ),
        tables=(
            Table(
                title="Bytes per pending wait, the user's own object included",
                columns=(Column("allocated", "allocated"), Column("resident", "resident set")),
                note=f"{WAITS:,} waits, {WAITS_PER_KEY} per key. Allocated: what tracemalloc counts; always "
                "the same. Resident set: what the process grows by, as a cross-check.",
            ),
        ),
        # Once: the count that matters does not vary.
        patience=0.0,
    )


def _probed(loop: str, section: str, name: str) -> Callable[[], Sample]:
    def measure() -> Sample:
        # Side by side: it takes half the time, and a count of bytes does not mind.
        with ThreadPoolExecutor() as pool:
            figures = pool.map(lambda method: _in_a_fresh_process(loop, section, name, method), METHODS)
            return dict(zip(METHODS, figures, strict=True))

    return measure


def _in_a_fresh_process(*probe: str) -> float:
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory_probe", *probe],
        # The same core as here, wherever it was imported from.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise RuntimeError(f"the memory probe {probe} failed:\n{finished.stderr}")
    return float(finished.stdout)
