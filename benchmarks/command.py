"""The command: ``python -m benchmarks [SUITE ...]``, or ``python -m benchmarks report RUN.json ...``."""

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.progress import track

from benchmarks.harness import record, tables
from benchmarks.harness.benchmark import Benchmark, Case, Result, Row, Sample, Setting, benchmarks_of
from benchmarks.harness.event_loop import LOOPS
from benchmarks.harness.processes import available_builds
from benchmarks.harness.worker import in_fresh_process

QUICK_REPETITIONS, REPETITIONS = 2, 5
# The suites and benchmarks whose instructions are counted by default.
INSTRUCTIONS = {"waits": "one-key", "timers": "sessions"}
SUITES = {
    "waits": "park, complete and expire waits for keys (the default)",
    "timers": "timeouts that are cancelled, or renewed",
    "load": "requests at ever higher rates; sizes are rates",
    "longpoll": "ten thousand long polls over HTTP beside asyncio.Condition",
    "pipeline": "the Spark pipeline as journals grow, beside DuckDB; the size is the number of operations",
    "delayed": "durable delayed messages beside SQLite and Redis",
    "signals": "signals between four workers over each transport, beside two libraries for Redis",
    "journal": "the cost of a journal, of metrics and of traces",
    "dashboard": "the cost of a view of the dashboard",
}

DESCRIPTION = """\
Measures purgatory beside its alternatives: all in one run, each measurement in a process of its own,
repetitions interleaved, the alternatives that win included. Quick by default.

suites:
{suites}

`python -m benchmarks report RUN.json ...` draws the pages of docs/benchmarks from recorded runs.
"""
EXAMPLES = """\
examples:
  python -m benchmarks                                 waits, quickly: some five minutes
  python -m benchmarks --only one-key memory           two benchmarks of it
  python -m benchmarks --only one-key --sizes 2000,1000      with a thousand and two thousand waits
  python -m benchmarks timers --loop uvloop --json timers.json
  python -m benchmarks waits timers --full --json full.json      up to a million waits, in forty minutes
  python -m benchmarks load --full --json load.json    up to 400,000 requests a second, in 17 minutes
  python -m benchmarks pipeline --full --directory /big/disk     up to 100 million, two hours and 40 GB
"""


def main(arguments: Sequence[str]) -> None:
    """Run the suites named on the command line, or draw the report. Ends the program when that fails."""
    try:
        if arguments[:1] == ["report"]:
            from benchmarks.harness.report import main as report

            report(arguments[1:])
        else:
            run_suites(parse(arguments))
    except (RuntimeError, OSError) as error:
        raise SystemExit(str(error) or repr(error)) from None


def run_suites(options: argparse.Namespace) -> None:
    """Run the suites. Tables are printed, and recorded, one by one."""
    if options.json is not None:
        # A bad path is refused before an hour of measuring.
        try:
            options.json.open("a").close()
        except OSError as error:
            raise SystemExit(
                f"--json {options.json}: {error.strerror}; choose a file that can be written"
            ) from None
    named = ("loop", "full", "sizes", "seconds", "memory", "directory", "instructions")
    setting = Setting(builds=available_builds(), **{name: getattr(options, name) for name in named})
    run = record.new_run(setting, options.repetitions)
    # Without a terminal as wide as the tables need.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else tables.WIDTH)
    builds = " and ".join(setting.builds)
    missing = "" if "compiled" in builds else " only (`make build/compiled/.built` builds the compiled core)"
    console.print(
        f"purgatory, {builds}{missing}; {setting.loop}; Python {platform.python_version()}; "
        f"{os.cpu_count()} cores; {options.repetitions} repetitions\n{tables.HOW_TO_READ}\n",
        width=tables.WIDTH,
    )
    for result in _measured(options, setting, console):
        run.benchmarks.append(result)
        if options.json is not None:
            run.write(options.json)


def _measured(options: argparse.Namespace, setting: Setting, console: Console) -> Iterator[Result]:
    for suite in options.suites:
        benchmarks = benchmarks_of(suite)
        for name, benchmark in benchmarks.items():
            if name in options.only or not options.only:
                result = interleave(suite, benchmark, setting, options.repetitions, console)
                tables.show(result, console)
                yield result
        if not benchmarks:
            module = import_module(f"benchmarks.suites.{suite.replace('-', '_')}")
            yield from module.run(setting, options.repetitions, console)


def interleave(
    suite: str, benchmark: Benchmark, setting: Setting, repetitions: int, console: Console
) -> Result:
    """Measure every case once, then every case a second time, and so on.

    So a slow spell of the machine falls on all of them. Each round starts with another case: otherwise a case
    would always follow the same other case. The console shows the summary and, on a terminal, the progress.
    """
    summary, cases, shown = benchmark.made(setting)
    console.print(f"{summary}\n")
    starts = (repetition % len(cases) for repetition in range(repetitions))
    turns = [case for start in starts for case in cases[start:] + cases[:start]]
    samples: dict[Case, list[Sample]] = {case: [] for case in cases}
    seconds: dict[Case, list[float]] = {case: [] for case in cases}
    for case in track(turns, "", console=console, transient=True, disable=not console.is_terminal):
        # Once more takes as long as the last time.
        if sum(seconds[case] + seconds[case][-1:]) <= benchmark.time_limit or not seconds[case]:
            start = time.perf_counter()
            samples[case].append(in_fresh_process(setting, suite, benchmark.name, case))
            seconds[case].append(time.perf_counter() - start)
    rows = [Row(case.section, case.name, case.build, taken) for case, taken in samples.items()]
    return Result(suite, benchmark.name, summary, shown, rows)


def sizes(text: str) -> tuple[int, ...]:
    """Numbers separated by commas. With fewer than ten there is nothing that could grow."""
    with suppress(ValueError):
        numbers = tuple(map(int, text.split(",")))
        if min(numbers) >= 10:
            return numbers
    raise argparse.ArgumentTypeError(f"must be whole numbers, 10 or more, separated by commas, not {text!r}")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options. Ends the program, with the reason, when one of them makes no sense."""
    suites = "\n".join(f"  {name:10} {summary}" for name, summary in SUITES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=DESCRIPTION.format(suites=suites),
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("suites", nargs="*", metavar="SUITE", help="what to measure (default: waits)")
    add("--only", nargs="+", default=[], metavar="BENCHMARK", help="only these benchmarks of the suites")
    add("--full", action="store_true", help="measure all sizes and cases, which takes several times as long")
    add(
        "--repetitions",
        type=int,
        metavar="N",
        help=f"how often each case is measured (default: {QUICK_REPETITIONS}, with --full {REPETITIONS})",
    )
    add(
        "--sizes",
        type=sizes,
        default=(),
        metavar="N,...",
        help="numbers of waits, in place of the usual ones",
    )
    add(
        "--seconds",
        type=float,
        default=1.0,
        metavar="S",
        help="how long requests come or timeouts expire (default: %(default)g)",
    )
    add("--loop", choices=LOOPS, default="asyncio", help="the event loop (default: %(default)s)")
    add("--json", type=Path, metavar="FILE", help="also write all figures to FILE")
    add(
        "--memory",
        default="4g",
        metavar="SIZE",
        help="for the pipeline: the heap of Spark, and the limit of DuckDB (default: %(default)s)",
    )
    add("--directory", metavar="DIR", help="for the pipeline: where its files go, up to 40 GB")
    add(
        "--instructions",
        action="store_true",
        help="count the processor's instructions of waits and heartbeats in place of time; needs valgrind",
    )
    options = parser.parse_args(arguments)
    usual = INSTRUCTIONS if options.instructions else ["waits"]
    options.suites = list(dict.fromkeys(options.suites or usual))
    if options.instructions:
        if shutil.which("valgrind") is None:
            parser.error("--instructions needs valgrind, which is not installed")
        options.only = options.only or [INSTRUCTIONS.get(suite, "one-key") for suite in options.suites]
        options.repetitions = 1
    if options.repetitions is None:
        options.repetitions = REPETITIONS if options.full else QUICK_REPETITIONS
    if options.repetitions < 1:
        parser.error("--repetitions must be 1 or more")
    if not 0.1 <= options.seconds <= 600:
        parser.error("--seconds must be from 0.1 to 600")
    for suite in options.suites:
        if suite not in SUITES:
            parser.error(f"there is no suite {suite!r}, but {', '.join(SUITES)}")
    known = [name for suite in options.suites for name in benchmarks_of(suite)] if options.only else []
    for name in options.only:
        if name not in known:
            parser.error(f"the suites have no benchmark {name!r}, but {', '.join(known)}")
    return options
