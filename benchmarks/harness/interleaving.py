"""Interleaves the repetitions of all cases, so that a slow spell of the machine falls on all of them."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import track

from benchmarks.harness.benchmark import Benchmark, Case, Result, Row, Sample


def interleave(
    suite: str, benchmark: Benchmark, repetitions: int, measure: Callable[[Case], Sample], console: Console
) -> Result:
    """Measure every case once, then every case a second time, and so on.

    Each round starts with another case: otherwise a case would always follow the same other case. The
    console shows the summary and, on a terminal, the progress.
    """
    console.print(f"{benchmark.summary}\n")
    cases = benchmark.cases
    starts = (repetition % len(cases) for repetition in range(repetitions))
    turns = [case for start in starts for case in cases[start:] + cases[:start]]
    samples: dict[Case, list[Sample]] = {case: [] for case in cases}
    seconds: dict[Case, list[float]] = {case: [] for case in cases}
    for case in track(turns, "", console=console, transient=True, disable=not console.is_terminal):
        # Once more takes as long as the last time.
        if sum(seconds[case] + seconds[case][-1:]) <= benchmark.time_limit or not seconds[case]:
            start = time.perf_counter()
            samples[case].append(measure(case))
            seconds[case].append(time.perf_counter() - start)
    rows = [Row(case.section, case.name, case.build, taken) for case, taken in samples.items()]
    return Result(suite, benchmark.name, benchmark.summary, benchmark.tables, rows)
