"""Runs all steps on journals of ever more operations, and compares the outcome with the aims."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Column, Result, Row, Sample, Table
from benchmarks.harness.setting import Setting
from benchmarks.suites.pipeline import agreement
from benchmarks.suites.pipeline.duckdb_tables import THREADS
from benchmarks.suites.pipeline.steps import DUCKDB, ORDER, STEPS, SUMMARIZE, Journal, measure

QUICK_OPERATIONS, OPERATIONS = 100_000, 10_000_000
# The largest journal has so many times the operations.
GROWTH = 10
# The share of the operations that one key has, in one journal.
HOT = 0.5
# The aims: the cost of ten times the operations, and of half of them on one key, each at most so many times.
GROWTH_AIM, SKEW_AIM = 10.5, 1.5
# Memory should not grow; two runs of the same differ by this.
MEMORY_AIM = 1.15
# Spark's overhead no longer matters where it takes less than so many times DuckDB's time.
OVERHEAD = 2.0
TOGETHER = "together"
COLUMNS = (Column("seconds", "seconds"), Column("processor_seconds", "CPU s"), Column("rss_mib", "peak MiB"))
HEAP = Column("heap_mib", "heap MiB")

Samples = Mapping[tuple[Journal, str], Sample]
Measure = Callable[[str, Journal, Path, str], Sample]


def run(setting: Setting, repetitions: int, console: Console, measure: Measure = measure) -> Iterator[Result]:
    """Measure each step once, whatever the repetitions. Raises CommandFailed, or Disagreement with DuckDB."""
    operations = (*setting.sizes, OPERATIONS if setting.full else QUICK_OPERATIONS)[0]
    if operations < 1000:
        raise RuntimeError(f"the pipeline needs --sizes from 1000 on, not {operations}")
    journals = plan(operations)
    samples: dict[tuple[Journal, str], Sample] = {}
    with tempfile.TemporaryDirectory(dir=setting.directory, prefix="pipeline-") as directory:
        for journal in journals:
            files = Path(directory, str(journal.operations))
            files.mkdir()
            for step in ORDER:
                sample = samples[journal, step] = measure(step, journal, files, setting.memory)
                if step == DUCKDB:
                    agreement.check(files / "dataset" / "summary", files / "tables")
                figures = map(tables.figure, (sample[column.metric] for column in COLUMNS))
                text = "{}: {}: {} s, {} s of CPU, {} MiB".format(journal, step, *figures)
                console.print(text, soft_wrap=True)
            shutil.rmtree(files)
    console.print()
    for result in results(samples, setting.memory):
        tables.show(result, console)
        yield result
    print_aims(samples, Journal(operations), journals[-1], console)
    console.print(overhead(samples), width=tables.WIDTH)


def plan(operations: int) -> Sequence[Journal]:
    """From few operations to many; the journal with the hot key comes after the one of the same size."""
    sizes = dict.fromkeys((operations // 100, operations // 10, operations))
    return [*map(Journal, sizes), Journal(operations, HOT), Journal(operations * GROWTH)]


def results(samples: Samples, memory: str) -> Iterator[Result]:
    """The measurements with so much memory, as tables."""
    journals = list(dict.fromkeys(journal for journal, _ in samples))
    yield _result(
        "pipeline-growth",
        "What the pipeline takes as journals grow",
        {(step, str(journal)): samples[journal, step] for step in STEPS for journal in journals},
        (*COLUMNS, HEAP),
        f"local[{THREADS}], a heap of {memory}; each step in a process of its own, whose start is counted. "
        "Peak: of all processes together, Python's included. Heap: after the collection that left the most. "
        "The ratio is that of the seconds to the first row's.",
    )
    yield _result(
        "pipeline-duckdb",
        "The same summaries by DuckDB",
        {
            (f"{journal} operations", name): samples[journal, step]
            for journal in journals
            for name, step in (("DuckDB", DUCKDB), ("Spark", SUMMARIZE))
        },
        COLUMNS,
        f"Of the same dataset, each with {THREADS} threads and {memory}. Both have found the same: counts "
        "are equal, and quantiles within the pipeline's bins of 0.1 %.",
    )


def _result(
    name: str, title: str, rows: Mapping[tuple[str, str], Sample], columns: tuple[Column, ...], note: str
) -> Result:
    """The result of a benchmark that has been measured already."""
    cases = [Row(section, case, None, [sample]) for (section, case), sample in rows.items()]
    return Result("pipeline", name, title, [Table(title, columns, note)], cases)


def aims(
    samples: Samples, small: Journal, large: Journal
) -> Iterator[tuple[str, Mapping[str, float], float]]:
    """Each aim: its name, by how much the cost grows in each step and together, and by how much it may.

    Together: the sum of the seconds, and the peak of the memory.
    """
    growth = large.operations / small.operations
    more, limit = f"{growth:g} times the operations", GROWTH_AIM * growth / 10

    def compared(metric: str, one: Journal, other: Journal) -> Mapping[str, float]:
        before, after = ({step: samples[each, step][metric] for step in STEPS} for each in (one, other))
        total = max if metric.endswith("mib") else sum
        ratios = {step: after[step] / before[step] for step in STEPS}
        return ratios | {TOGETHER: total(after.values()) / total(before.values())}

    yield f"{more}: seconds", compared("seconds", small, large), limit
    yield f"{more}: CPU seconds", compared("processor_seconds", small, large), limit
    yield f"{more}: heap", compared("heap_mib", small, large), MEMORY_AIM
    yield f"{more}: all memory", compared("rss_mib", small, large), MEMORY_AIM
    for hot in dict.fromkeys(journal for journal, _ in samples if journal.hot):
        like = Journal(hot.operations)
        yield f"{hot}: seconds", compared("seconds", like, hot), SKEW_AIM
        yield f"{hot}: CPU seconds", compared("processor_seconds", like, hot), SKEW_AIM


def print_aims(samples: Samples, small: Journal, large: Journal, console: Console) -> None:
    """Print the growth of each cost, and whether the aim is met by all steps."""
    grid = tables.new_grid("So many times as much")
    for heading in (*STEPS, TOGETHER, "allowed", ""):
        grid.add_column(heading, justify="right", no_wrap=True)
    for name, ratios, limit in aims(samples, small, large):
        met = "met" if max(ratios.values()) <= limit else "missed"
        grid.add_row(name, *map(tables.figure, ratios.values()), f"{limit:g}", met)
    tables.print_grid(console, grid, "Together: the sum of the seconds, the peak of the memory.")


def overhead(samples: Samples) -> str:
    """From how many operations on Spark's overhead no longer matters, in a sentence."""
    ratio, journal = 0.0, Journal(0)
    for journal in dict.fromkeys(journal for journal, _ in samples if not journal.hot):
        ratio = samples[journal, SUMMARIZE]["seconds"] / samples[journal, DUCKDB]["seconds"]
        if ratio < OVERHEAD:
            return f"From {journal} operations on Spark takes less than {OVERHEAD:g} times as long as DuckDB."
    return (
        f"Spark's overhead has not stopped mattering: with {journal} operations it takes {ratio:.1f} "
        "times as long as DuckDB."
    )
