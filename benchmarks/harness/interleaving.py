"""Interleaves the repetitions of all cases, so that a slow spell of the machine falls on all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.harness.benchmark import Benchmark, Case, Result, Sample
from benchmarks.harness.worker import Measure


def measure_all(
    benchmarks: Sequence[tuple[str, Benchmark]], repetitions: int, console: Console, measure: Measure
) -> Iterator[Result]:
    """Measure one (suite, benchmark) after the other, with a progress bar or, without a terminal, a line."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        steps = sum(len(benchmark.cases) for _, benchmark in benchmarks) * repetitions
        bar = progress.add_task("", total=steps)

        def advance(description: str) -> None:
            progress.update(bar, description=description)
            progress.advance(bar)

        for number, (suite, benchmark) in enumerate(benchmarks, 1):
            if not console.is_terminal:
                console.print(f"{number}/{len(benchmarks)} {benchmark.summary}\n")
            yield interleave(suite, benchmark, repetitions, measure, advance)


def interleave(
    suite: str,
    benchmark: Benchmark,
    repetitions: int,
    measure: Measure,
    announce: Callable[[str], None] = lambda _: None,
) -> Result:
    """Measure every case once, then every case a second time, and so on.

    Each round starts with another case: otherwise a case would always follow the same other case. `announce`
    is called for each case in each repetition, also when the benchmark's time limit for the case is reached.
    """
    cases = benchmark.cases
    samples: dict[Case, list[Sample]] = {case: [] for case in cases}
    spent, last = dict.fromkeys(cases, 0.0), dict.fromkeys(cases, 0.0)
    for repetition in range(repetitions):
        first = repetition % len(cases)
        for case in cases[first:] + cases[:first]:
            announce(f"{benchmark.name}: {case.name}")
            if not samples[case] or spent[case] + last[case] <= benchmark.time_limit:
                start = time.perf_counter()
                samples[case].append(measure(suite, benchmark.name, case))
                last[case] = time.perf_counter() - start
                spent[case] += last[case]
    return Result(suite, benchmark, samples)
