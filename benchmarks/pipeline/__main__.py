"""The command: ``python -m benchmarks.pipeline``."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks import record, tables
from benchmarks.arguments import add_json, command_line, existing_directory, whole
from benchmarks.builds import build
from benchmarks.pipeline import agreement
from benchmarks.pipeline.case import THREADS, Case
from benchmarks.pipeline.findings import TOGETHER, Verdict, answers, overhead, verdicts
from benchmarks.pipeline.steps import DUCKDB, ORDER, STEPS, measure
from benchmarks.pipeline.usage import AVAILABLE, CommandFailed
from benchmarks.question import Sample
from benchmarks.setting import Setting

OPERATIONS = 10_000_000
MEMORY = "4g"
# How many times as many there are in the largest journal.
GROWTH = 10
# The share of them that one key has, in one journal.
HOT = 0.5
# What a step takes before it does anything, in operations that it could do meanwhile.
_START = 1_000_000

COMMAND = "python -m benchmarks.pipeline"
DESCRIPTION = f"""\
Measures the pipeline on journals of ever more made-up operations, up to ten times N, and on one in which
half of N watch one key; and DuckDB's summaries of the same. Both have {THREADS} threads.
"""
EXAMPLES = """\
examples:
  python -m benchmarks.pipeline                         up to 100 million, two hours and 40 GB of disk
  python -m benchmarks.pipeline --operations 100_000    a first look, in 20 minutes
  python -m benchmarks.pipeline --memory 1g             what it does not need more for
  python -m benchmarks.pipeline --directory /big/disk --json pipeline.json
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; exit with a message where a step fails, or DuckDB found something else."""
    options = _options(arguments)
    cases = plan(options.operations)
    console = tables.console()
    versions = ", ".join(f"{name} {version(name.lower())}" for name in ("PySpark", "DuckDB"))
    console.print(f"{versions}; Python {platform.python_version()}; {os.cpu_count()} cores\n")
    samples: dict[tuple[Case, str], Sample] = {}
    try:
        with (
            tempfile.TemporaryDirectory(dir=options.directory, prefix="pipeline-") as files,
            _progress(console, cases) as tell,
        ):
            for case in cases:
                for step, sample in measured(case, Path(files), options.memory):
                    samples[case, step] = sample
                    tell(case, step, sample)
    except (CommandFailed, agreement.Disagreement) as error:
        raise SystemExit(str(error)) from None
    found = list(answers(samples, options.memory))
    for answer in found:
        tables.show(answer, console)
    _show(list(verdicts(samples, Case(options.operations), cases[-1])), console)
    console.print(overhead(samples), width=tables.WIDTH)
    if options.json is not None:
        record.write(options.json, found, Setting(builds=(build(),)), 1, command=COMMAND)


def plan(operations: int) -> Sequence[Case]:
    """From few operations to many, with the hot key after its like."""
    sizes = dict.fromkeys((operations // 100, operations // 10, operations))
    return [*map(Case, sizes), Case(operations, HOT), Case(operations * GROWTH)]


def measured(case: Case, directory: Path, memory: str) -> Iterator[tuple[str, Sample]]:
    """Each step, in its order. Raises CommandFailed, and Disagreement."""
    files = directory / str(case.operations)
    files.mkdir()
    for step in ORDER:
        yield step, measure(step, case, files, memory)
        if step == DUCKDB:
            agreement.check(files / "dataset" / "summary", files / "tables")
    shutil.rmtree(files)


@contextmanager
def _progress(console: Console, cases: Sequence[Case]) -> Iterator[Callable[[Case, str, Sample], None]]:
    """Gives what is to be told of each step: shown as a line, and by a bar where one can be drawn."""
    columns = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("", total=sum(case.operations + _START for case in cases) * len(ORDER))

        def tell(case: Case, step: str, sample: Sample) -> None:
            bars.advance(bar, case.operations + _START)
            seconds, processor, memory = (
                tables.figure(sample[name]) for name in ("seconds", "processor_seconds", "rss_mib")
            )
            console.print(f"{case}: {step}: {seconds} s, {processor} s of CPU, {memory} MiB", soft_wrap=True)

        yield tell
    console.print()


def _show(verdicts: Sequence[Verdict], console: Console) -> None:
    grid = Table(
        title="So many times as much", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD,
        show_edge=False, padding=0,
    )  # fmt: skip
    grid.add_column("", no_wrap=True)
    for heading in (*STEPS, TOGETHER, "allowed", ""):
        grid.add_column(heading, justify="right", no_wrap=True)
    for verdict in verdicts:
        grid.add_row(
            verdict.claim,
            *(tables.figure(verdict.ratios[heading]) for heading in (*STEPS, TOGETHER)),
            f"{verdict.bar:g}",
            "met" if verdict.met else "missed",
        )
    console.print(grid)
    console.print(
        Padding("Together: the sum of the seconds, the peak of the memory.", (0, 0, 1, 1)), style="dim"
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says. Ends the program, in plain words, when that makes no sense."""
    parser = command_line(COMMAND, DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--operations",
        type=whole(1000),
        default=OPERATIONS,
        metavar="N",
        help=f"as many, and {GROWTH} times as many (default: {OPERATIONS:,})",
    )
    parser.add_argument(
        "--memory",
        type=_memory,
        default=MEMORY,
        metavar="SIZE",
        help="of the driver's heap, and what DuckDB may use (default: %(default)s)",
    )
    parser.add_argument(
        "--directory",
        type=existing_directory,
        metavar="DIR",
        help="where the files go meanwhile (default: as for all such)",
    )
    add_json(parser)
    options = parser.parse_args(arguments)
    if not AVAILABLE:
        parser.error("this needs Linux, which tells what other processes use")
    return options


def _memory(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]*[mg]", text):
        raise argparse.ArgumentTypeError(f"must be like 512m or 4g, not {text!r}")
    return text


if __name__ == "__main__":
    main()
