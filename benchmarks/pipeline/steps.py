"""The pipeline's steps, and DuckDB, one at a time on the files of a case."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.builds import environment
from benchmarks.pipeline.case import HOTTEST, THREADS, Case
from benchmarks.pipeline.usage import Usage, measured
from benchmarks.question import Sample

GENERATE: Final = "generate"
COMPACT: Final = "compact"
SUMMARIZE: Final = "summarize"
ADVISE: Final = "advise"
STEPS: Final = (GENERATE, COMPACT, SUMMARIZE, ADVISE)
# The same as summarize.
DUCKDB: Final = "DuckDB"
ORDER: Final = (GENERATE, COMPACT, SUMMARIZE, DUCKDB, ADVISE)

# What a pause of the collector left, in a line of Java's log: "Pause Young (Normal) 812M->93M(1024M)".
_LEFT: Final = re.compile(r"Pause .*->(\d+)M\(")


def measure(step: str, case: Case, directory: Path, memory: str) -> Sample:
    """What a step takes on what those before it have left in the directory.

    `memory`, as Java writes it, is of the heap of Spark's driver, and what DuckDB may use. Raises
    CommandFailed.
    """
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        if step == DUCKDB:
            return _sample(measured(_yardstick(directory, scratch, memory), environment("interpreted")))
        log = Path(scratch, "gc.log")
        usage = measured(_command(step, case, directory, log, memory), environment("interpreted"))
        return {**_sample(usage), "heap_mib": most_left(log.read_text())}


def _command(step: str, case: Case, directory: Path, log: Path, memory: str) -> Sequence[str]:
    journal, dataset = str(directory / "journal"), str(directory / "dataset")
    arguments = {
        GENERATE: [
            *(journal, f"--operations={case.operations}", f"--duration={case.seconds}"),
            # No key but the hot one is wanted more than another.
            *(f"--hot={case.hot}", "--zipf=0"),
        ],
        COMPACT: [journal, dataset],
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


def _yardstick(directory: Path, scratch: str, memory: str) -> Sequence[str]:
    paths = (str(directory / "dataset"), str(directory / "tables"))
    return [
        sys.executable,
        "-m",
        "benchmarks.pipeline.yardstick",
        *paths,
        f"--spill={scratch}",
        f"--memory={memory}",
    ]


def most_left(log: str) -> float:
    """MiB on the heap after the collection that left the most: no less than what was alive at any time."""
    return max(map(float, _LEFT.findall(log)), default=0.0)


def _sample(usage: Usage) -> Sample:
    return {
        "seconds": usage.seconds,
        "processor_seconds": usage.processor_seconds,
        "rss_mib": usage.peak_rss / (1 << 20),
    }
