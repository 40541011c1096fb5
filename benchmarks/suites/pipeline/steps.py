"""The pipeline's steps, and DuckDB, one at a time on the files of a journal."""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.benchmark import Sample
from benchmarks.harness.processes import environment
from benchmarks.suites.pipeline.duckdb_tables import HOTTEST, THREADS
from benchmarks.suites.pipeline.usage import measured

GENERATE, COMPACT, SUMMARIZE, ADVISE = STEPS = ("generate", "compact", "summarize", "advise")
# The same as summarize.
DUCKDB = "DuckDB"
ORDER = (GENERATE, COMPACT, SUMMARIZE, DUCKDB, ADVISE)
# More operations take longer, as they do in a journal that grows: ten million are those of an hour.
_PER_SECOND = 10_000_000 / 3600
# The heap after a pause of the collector, in a line of Java's log: "Pause Young (Normal) 812M->93M(1024M)".
_LEFT = re.compile(r"Pause .*->(\d+)M\(")


@dataclass(frozen=True, slots=True)
class Journal:
    """So many operations, with keys that are equally likely, except for one key that has a share of them."""

    operations: int
    hot: float = 0.0

    def __str__(self) -> str:
        return f"{self.operations:,}" + (f", one key has {self.hot:.0%}" if self.hot else "")


def measure(step: str, journal: Journal, directory: Path, memory: str) -> Sample:
    """The cost of a step on the files that the steps before it have left in the directory.

    `memory`, as Java writes it, is the heap of Spark's driver, and the limit of DuckDB. Raises CommandFailed.
    """
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        log = Path(scratch, "gc.log")
        if step == DUCKDB:
            paths = (str(directory / "dataset"), str(directory / "tables"), scratch)
            command = [sys.executable, "-m", "benchmarks.suites.pipeline.duckdb_tables", *paths, memory]
        else:
            command = _command(step, journal, directory, log, memory)
        usage = measured(command, environment("interpreted"))
        sample = {
            "seconds": usage.seconds,
            "processor_seconds": usage.processor_seconds,
            "rss_mib": usage.peak_rss / (1 << 20),
        }
        return sample if step == DUCKDB else sample | {"heap_mib": most_left(log.read_text())}


def _command(step: str, journal: Journal, directory: Path, log: Path, memory: str) -> list[str]:
    files, dataset = str(directory / "journal"), str(directory / "dataset")
    operations, seconds = journal.operations, journal.operations / _PER_SECOND
    arguments = {
        # No key but the hot one is more likely than another.
        GENERATE: [
            files,
            f"--operations={operations}",
            f"--duration={seconds}",
            f"--hot={journal.hot}",
            "--zipf=0",
        ],
        COMPACT: [files, dataset],
        SUMMARIZE: [dataset, f"--hottest={HOTTEST}"],
        ADVISE: [dataset],
    }[step]
    settings = {
        "spark.local.dir": str(log.parent),
        "spark.driver.extraJavaOptions": f"-Xlog:gc:file={log}:uptime:filecount=0",
    }
    return [
        *(sys.executable, "-m", "purgatory.pipeline", step, *arguments),
        *(f"--master=local[{THREADS}]", f"--memory={memory}"),
        *(f"--conf={name}={value}" for name, value in settings.items()),
    ]


def most_left(log: str) -> float:
    """MiB on the heap after the collection that left the most: no less than what was alive at any time."""
    return max(map(float, _LEFT.findall(log)), default=0.0)
