"""Runs all steps of the pipeline on journals of ever more operations, and compares the cost with the aims.

Each step is a command in a process of its own. So is what DuckDB does of the same journal, by the SQL that a
user with one machine would write (pipeline-compact.sql and pipeline-summarize.sql):
``python -m benchmarks.suites.pipeline``. Linux counts the time and memory of a step, with all the processes
that it starts.
"""

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from deltalake import DeltaTable
from rich.console import Console

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Result, Row, Sample, Setting, Table, spreads
from benchmarks.harness.processes import ROOT, environment
from purgatory.pipeline.spark import Spark

# The first only starts Spark, which is a part of each other step.
START = "start"
STEPS = ("generate", "compact", "summarize", "advise")
# What DuckDB does, after the step that does the same.
DUCKDB = {"compact": "DuckDB's compact", "summarize": "DuckDB's summarize"}
ORDER = (START, *(each for step in STEPS for each in (step, DUCKDB.get(step)) if each))
QUICK_OPERATIONS, OPERATIONS = 100_000, 10_000_000
# The largest journal has so many times the operations.
GROWTH = 10
# The share of the operations that one key has, in one journal.
HOT = 0.5
# More operations take longer, as they do in a journal that grows: ten million are those of an hour.
PER_SECOND = 10_000_000 / 3600
# The aims: the cost of ten times the operations, and of half of them on one key, each at most so many times.
GROWTH_AIM, SKEW_AIM = 10.5, 1.5
# Compact and summarize together: at most so many times DuckDB's seconds, from so many operations on.
DUCKDB_AIM, DUCKDB_FROM = 4.5, 1_000_000
# Memory should not grow; two runs of the same differ by this.
MEMORY_AIM = 1.15
COLUMNS = spreads(seconds="seconds", processor_seconds="CPU s", rss_mib="peak MiB")
# The heap after a pause of the collector, in a line of Java's log: "Pause Young (Normal) 812M->93M(1024M)".
LEFT = re.compile(r"Pause .*->(\d+)M\(")
# For Spark and for DuckDB.
THREADS = 2
# Where Python keeps the bytecode of packages: pip compiles them, but a variable may forbid it.
BYTECODE = {"PYTHONPYCACHEPREFIX": str(ROOT / "build" / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
# The keys of each purgatory that are listed by each measure.
HOTTEST = 20
# The tables, with the columns that identify a row.
TABLES = {
    "minutes": ["minute", "purgatory", "kind"],
    "pending": ["minute", "purgatory", "kind"],
    "hottest_keys": ["purgatory", "by", "rank"],
    "fan_out": ["minute", "purgatory"],
}
# The pipeline's quantiles are too low by less than this share (the macro `bin` of `purgatory.pipeline.sql`).
BIN = 1e-3
# Sums of floats, in another order.
ROUNDING = 1e-9
# By which share the pipeline may be below DuckDB. All other columns have to be equal.
BELOW = {
    **dict.fromkeys(("wait_p50_us", "wait_p90_us", "wait_p99_us", "wait_p999_us"), BIN),
    **dict.fromkeys(("lateness_p99_us", "tried_p50", "tried_p99"), BIN),
    **dict.fromkeys(("tries_per_operation", "pending_mean"), ROUNDING),
}
# Indices of the fields of /proc/PID/stat from the third one on: proc(5).
STATE, PARENT, SESSION, USER, SYSTEM, VIRTUAL, RESIDENT = 0, 1, 3, 11, 12, 20, 21


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
                if step == DUCKDB["summarize"]:
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
    files, dataset, clean, found = (
        str(directory / name) for name in ("journal", "dataset", "clean", "tables")
    )
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
        if step == START:
            return measured("-c", "from benchmarks.suites import pipeline; pipeline.start()")
        if step == DUCKDB["compact"]:
            return measured("-m", "benchmarks.suites.pipeline", "compact", files, clean, scratch, memory)
        if step == DUCKDB["summarize"]:
            return measured("-m", "benchmarks.suites.pipeline", "summarize", clean, found, scratch, memory)
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
    growth = Table(
        "What the pipeline takes as journals grow",
        COLUMNS + spreads(heap_mib="heap MiB"),
        f"local[{THREADS}], a heap of {memory}; each step in a process of its own, whose start is counted. "
        "Peak: of all processes together, Python's included. Heap: after the collection that left the most. "
        "The ratio is that of the seconds to the first row's.",
    )
    beside = Table(
        "The same by DuckDB",
        COLUMNS,
        f"Of the same journal, each with {THREADS} threads and {memory}. Both have found the same: counts "
        "are equal, and quantiles within the pipeline's bins of 0.1 %.",
    )
    steps = [Row(step, str(each), None, [samples[each][step]]) for step in STEPS for each in samples]
    both = [
        Row("start", "Spark", None, [costs[START] for costs in samples.values()]),
        *(
            Row(f"{journal} operations, {step}", name, None, [costs[own]])
            for journal, costs in samples.items()
            for step, other in DUCKDB.items()
            for name, own in (("DuckDB", other), ("Spark", step))
        ),
    ]
    yield Result("pipeline", "pipeline-growth", growth.title, [growth], steps)
    yield Result("pipeline", "pipeline-duckdb", beside.title, [beside], both)


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
    print_ratios(samples, console)


def print_ratios(samples: Samples, console: Console) -> None:
    """Print how many times as long as DuckDB the pipeline takes, and whether that meets the aim."""
    grid = tables.new_grid("Compact and summarize, in seconds")
    for heading in ("Spark", "DuckDB", "times", "allowed", ""):
        grid.add_column(heading, justify="right", no_wrap=True)
    for journal, costs in samples.items():
        spark, duckdb = (sum(costs[step]["seconds"] for step in steps) for steps in (DUCKDB, DUCKDB.values()))
        aim = (f"{DUCKDB_AIM}", "met" if spark <= DUCKDB_AIM * duckdb else "missed")
        compared = aim if journal.operations >= DUCKDB_FROM else ("", "")
        grid.add_row(str(journal), *map(tables.figure, (spark, duckdb, spark / duckdb)), *compared)
    tables.print_grid(console, grid, "Each of the two starts Spark.")


def measured(*arguments: str) -> Sample:
    """Run Python with these arguments, in a session of its own, until no process of that is left.

    The memory is the most that all processes had at a time; what two of them share may count twice.
    Raises RuntimeError, with the output, when the program fails.
    """
    command, env = [sys.executable, *arguments], {**environment("interpreted"), **BYTECODE}
    with tempfile.TemporaryFile("w+") as output:
        began, reaped = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env=env, start_new_session=True
        )
        try:
            spent, peak = _watched(process)
        finally:
            for left in _processes(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
            process.wait()
        took = time.perf_counter() - began
        if process.returncode:
            output.seek(0)
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{output.read()}")
    # `spent` misses the time after the last look at a process, and processes between two looks. What the
    # children used misses those that no process has waited for, such as a JVM that Python has started.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = max(spent, used.ru_utime + used.ru_stime - reaped.ru_utime - reaped.ru_stime)
    return {"seconds": took, "processor_seconds": spent, "rss_mib": peak / (1 << 20)}


def _watched(process: subprocess.Popen[bytes]) -> tuple[float, int]:
    spent: dict[int, int] = {}
    peak = 0
    while True:
        ended = process.poll() is not None
        alive = _processes(process.pid)
        spent |= {identity: int(fields[USER]) + int(fields[SYSTEM]) for identity, fields in alive.items()}
        # A process that was just forked is as large to the byte as its parent, and shares its memory. It does
        # not count: a JVM of gigabytes forks to set a file's mode.
        virtual = {identity: fields[VIRTUAL] for identity, fields in alive.items()}
        own = [each for each in alive.values() if virtual.get(int(each[PARENT])) != each[VIRTUAL]]
        peak = max(peak, sum(int(fields[RESIDENT]) for fields in own) * resource.getpagesize())
        if ended and not alive:
            return sum(spent.values()) / os.sysconf("SC_CLK_TCK"), peak
        time.sleep(0.1)


def _processes(session: int) -> Mapping[int, Sequence[str]]:
    """The fields of each process of the session, by its identity."""
    found: dict[int, Sequence[str]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        # A process may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            # Behind the name, which may have spaces.
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            if fields[STATE] != "Z" and int(fields[SESSION]) == session:
                found[int(name)] = fields
    return found


def start() -> None:
    """Start Spark, as each step does, and run a job on it."""
    with Spark(f"local[{THREADS}]") as spark:
        spark.context.parallelize(range(THREADS), THREADS).count()


def compact(journal: str, clean: str, spill: str, memory: str) -> None:
    """Write the valid rows of a journal, each once, as Parquet files into the directory `clean`."""
    Path(clean).mkdir()
    execute("compact", spill, memory, journal=journal, clean=clean)


def summarize_compacted(clean: str, tables: str, spill: str, memory: str) -> None:
    """Summarize what `compact` has left."""
    operations, checks = (
        sorted(map(str, Path(clean, name).rglob("*.parquet"))) for name in ("operations", "checks")
    )
    summarize(operations, checks, tables, spill, memory)


def summarize(operations: Sequence[str], checks: Sequence[str], tables: str, spill: str, memory: str) -> None:
    """Write each table as a Parquet file; what does not fit in memory goes into `spill`."""
    Path(tables).mkdir()
    files = {"operations": operations, "checks": checks}
    execute("summarize", spill, memory, **files, tables=tables, hottest=HOTTEST)


def execute(step: str, spill: str, memory: str, **values: object) -> None:
    sql = Path(__file__).with_name(f"pipeline-{step}.sql").read_text()
    with duckdb.connect() as connection:
        connection.execute(sql.format(threads=THREADS, spill=spill, memory=memory, **values))


def check(summaries: Path, tables: Path) -> None:
    """Compare the pipeline's tables with DuckDB's. Raises RuntimeError, with rows that differ."""
    for name, identity in TABLES.items():
        pipeline = DeltaTable(summaries / name).to_pandas()
        if "minute" in identity:
            # To DuckDB minutes are numbers, since 1970.
            pipeline["minute"] = [int(minute.timestamp()) // 60 for minute in pipeline["minute"]]
        duckdb_table = pq.read_table(tables / f"{name}.parquet").to_pandas()
        # A row that only one of both has is null in the other.
        pipeline, duckdb_table = pipeline.set_index(identity).align(duckdb_table.set_index(identity), axis=0)
        for column, right in duckdb_table.items():
            own = pipeline[column]
            if column in BELOW:
                agree = own.between(right * (1 - BELOW[column]) - ROUNDING, right * (1 + ROUNDING) + ROUNDING)
            else:
                agree = own == right
            differ = ~agree & (own.notna() | right.notna())
            if differ.any():
                raise RuntimeError(f"{name}: the pipeline has\n{own[differ]}\nand DuckDB\n{right[differ]}")


if __name__ == "__main__":
    {"compact": compact, "summarize": summarize_compacted}[sys.argv[1]](*sys.argv[2:])
