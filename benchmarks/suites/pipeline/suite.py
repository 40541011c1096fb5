"""Runs all steps of the pipeline on journals of ever more operations, and compares the cost with the aims.

Each step is a command in a process of its own, and so are DuckDB's summaries of the same dataset.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Column, Result, Row, Sample, Table
from benchmarks.harness.setting import Setting
from benchmarks.suites.pipeline.duckdb_tables import HOTTEST, THREADS, check
from benchmarks.suites.pipeline.usage import measured

STEPS = ("generate", "compact", "summarize", "advise")
# The same as summarize, and after it.
DUCKDB = "DuckDB"
ORDER = ("generate", "compact", "summarize", DUCKDB, "advise")
QUICK_OPERATIONS, OPERATIONS = 100_000, 10_000_000
# The largest journal has so many times the operations.
GROWTH = 10
# The share of the operations that one key has, in one journal.
HOT = 0.5
# More operations take longer, as they do in a journal that grows: ten million are those of an hour.
PER_SECOND = 10_000_000 / 3600
# The aims: the cost of ten times the operations, and of half of them on one key, each at most so many times.
GROWTH_AIM, SKEW_AIM = 10.5, 1.5
# Memory should not grow; two runs of the same differ by this.
MEMORY_AIM = 1.15
COLUMNS = (Column("seconds", "seconds"), Column("processor_seconds", "CPU s"), Column("rss_mib", "peak MiB"))
# The heap after a pause of the collector, in a line of Java's log: "Pause Young (Normal) 812M->93M(1024M)".
LEFT = re.compile(r"Pause .*->(\d+)M\(")


@dataclass(frozen=True, slots=True)
class Journal:
    """So many operations, with keys that are equally likely, except for one key that has a share of them."""

    operations: int
    hot: float = 0.0

    def __str__(self) -> str:
        return f"{self.operations:,}" + (f", one key has {self.hot:.0%}" if self.hot else "")


# Of each step.
Samples = Mapping[Journal, Mapping[str, Sample]]


def run(setting: Setting, repetitions: int, console: Console) -> Iterator[Result]:
    """Measure each step once, whatever the repetitions.

    Raises RuntimeError when a step fails, or when DuckDB's tables are not the pipeline's.
    """
    operations = (*setting.sizes, OPERATIONS if setting.full else QUICK_OPERATIONS)[0]
    if operations < 1000:
        raise RuntimeError(f"the pipeline needs --sizes from 1000 on, not {operations}")
    usual, hot, large = Journal(operations), Journal(operations, HOT), Journal(operations * GROWTH)
    small = (Journal(operations // 100), Journal(operations // 10))
    samples: dict[Journal, dict[str, Sample]] = {journal: {} for journal in (*small, usual, hot, large)}
    for journal, costs in samples.items():
        with tempfile.TemporaryDirectory(dir=setting.directory, prefix="pipeline-") as directory:
            files = Path(directory)
            for step in ORDER:
                sample = costs[step] = measure(step, journal, files, setting.memory)
                if step == DUCKDB:
                    check(files / "dataset" / "summary", files / "tables")
                figures = map(tables.figure, (sample[column.metric] for column in COLUMNS))
                text = "{}: {}: {} s, {} s of CPU, {} MiB".format(journal, step, *figures)
                console.print(text, soft_wrap=True)
    console.print()
    for result in results(samples, setting.memory):
        tables.show(result, console)
        yield result
    print_aims(samples, usual, hot, large, console)


def measure(step: str, journal: Journal, directory: Path, memory: str) -> Sample:
    """The cost of a step on the files that the steps before it have left in the directory.

    `memory`, as Java writes it, is the heap of Spark's driver, and the limit of DuckDB.
    """
    files, dataset, duckdb_tables = (str(directory / name) for name in ("journal", "dataset", "tables"))
    operations, seconds = journal.operations, journal.operations / PER_SECOND
    # No key but the hot one is more likely than another.
    generated = (f"--operations={operations}", f"--duration={seconds}", f"--hot={journal.hot}", "--zipf=0")
    arguments = {
        "generate": (files, *generated),
        "compact": (files, dataset),
        "summarize": (dataset, f"--hottest={HOTTEST}"),
        "advise": (dataset,),
    }
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        if step == DUCKDB:
            module = "benchmarks.suites.pipeline.duckdb_tables"
            return measured("-m", module, dataset, duckdb_tables, scratch, memory)
        log = Path(scratch, "gc.log")
        usage = measured(
            *("-m", "purgatory.pipeline", step, *arguments[step]),
            *(f"--master=local[{THREADS}]", f"--memory={memory}", f"--conf=spark.local.dir={scratch}"),
            f"--conf=spark.driver.extraJavaOptions=-Xlog:gc:file={log}:uptime:filecount=0",
        )
        return {**usage, "heap_mib": most_left(log.read_text())}


def most_left(log: str) -> float:
    """MiB on the heap after the collection that left the most: no less than what was alive at any time."""
    return max(map(float, LEFT.findall(log)), default=0.0)


def results(samples: Samples, memory: str) -> Iterator[Result]:
    """The measurements with so much memory, as tables."""
    yield _result(
        "pipeline-growth",
        "What the pipeline takes as journals grow",
        {(step, str(journal)): costs[step] for step in STEPS for journal, costs in samples.items()},
        (*COLUMNS, Column("heap_mib", "heap MiB")),
        f"local[{THREADS}], a heap of {memory}; each step in a process of its own, whose start is counted. "
        "Peak: of all processes together, Python's included. Heap: after the collection that left the most. "
        "The ratio is that of the seconds to the first row's.",
    )
    yield _result(
        "pipeline-duckdb",
        "The same summaries by DuckDB",
        {
            (f"{journal} operations", name): costs[step]
            for journal, costs in samples.items()
            for name, step in (("DuckDB", DUCKDB), ("Spark", "summarize"))
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


def print_aims(samples: Samples, usual: Journal, hot: Journal, large: Journal, console: Console) -> None:
    """Print by how much the cost of each step grows, and whether all steps meet the aim."""
    grid = tables.new_grid("So many times as much")
    for heading in (*STEPS, "together", "allowed", ""):
        grid.add_column(heading, justify="right", no_wrap=True)
    for journal, cost, metric, aim in (
        (large, "seconds", "seconds", GROWTH_AIM),
        (large, "CPU seconds", "processor_seconds", GROWTH_AIM),
        (large, "heap", "heap_mib", MEMORY_AIM),
        (large, "all memory", "rss_mib", MEMORY_AIM),
        (hot, "seconds", "seconds", SKEW_AIM),
        (hot, "CPU seconds", "processor_seconds", SKEW_AIM),
    ):
        before, after = ([samples[each][step][metric] for step in STEPS] for each in (usual, journal))
        together = max if metric.endswith("mib") else sum
        ratios = [own / base for own, base in zip(after, before, strict=True)]
        ratios.append(together(after) / together(before))
        name = str(hot) if journal is hot else f"{GROWTH} times the operations"
        met = "met" if max(ratios) <= aim else "missed"
        grid.add_row(f"{name}: {cost}", *map(tables.figure, ratios), f"{aim:g}", met)
    tables.print_grid(console, grid, "Together: the sum of the seconds, the peak of the memory.")
