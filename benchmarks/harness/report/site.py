"""All pages and charts of some runs, and the command that writes them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from benchmarks.harness import record
from benchmarks.harness.record import Run
from benchmarks.harness.report import markdown
from benchmarks.harness.report.benchmark_page import benchmark_page
from benchmarks.harness.report.load_page import load_page

INTRODUCTION = """\
Purgatory side by side with what people use instead, and with the designs that came before it. All pages
here are written by `python -m benchmarks report`, from what the runs below have measured.

## How to read it

- Figures are medians (minimum-maximum) of interleaved repetitions: each case is measured once, then each
  a second time, and so on, so that a slow spell of the machine falls on all of them. Less is better,
  except in figures per second.
- Compare ratios, within one run. Each is of two figures from the same repetition. Bare times are this
  machine's, on that day, and drift by a factor of two.
- Bars are ratios to the first row of the section, which is the line at 1; whiskers reach from minimum to
  maximum. What ends left of the line costs less than purgatory does.
- Where lines are drawn against n, what stays flat costs the same however much waits.
"""


def main(arguments: Sequence[str]) -> None:
    """Write the pages for the files named on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks report",
        description="Writes the tables and charts of recorded runs as pages of Markdown.",
    )
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="a run that the benchmarks wrote with --json")
    into = Path("docs/benchmarks")
    add("--into", type=Path, default=into, metavar="DIRECTORY", help="default: %(default)s")
    options = parser.parse_args(arguments)
    files = site({file: record.read(file) for file in options.files})
    for path, text in files.items():
        file = options.into / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    print(f"{options.into / 'README.md'}, and {len(files) - 1} files beside it")


def site(runs: Mapping[Path, Run]) -> dict[str, str]:
    """Every file's text by its path: the index, and a directory for each loop.

    Raises RuntimeError when two runs hold the same benchmark on the same loop.
    """
    files: dict[str, str] = {}
    loops: dict[str, list[str]] = {}
    for file, run in runs.items():
        commit = f"commit {run.commit}" if run.commit else "outside of a checkout"
        origin = f"Measured on {run.loop}, {run.written.partition('T')[0]}, {commit}"
        pages = [benchmark_page(origin, result) for result in run.benchmarks]
        if run.load is not None:
            pages.append(load_page(origin, run.load))
        links = []
        for page in pages:
            path = f"{run.loop}/{page.name}.md"
            if path in files:
                raise RuntimeError(f"{file}: {page.name} on {run.loop} is in another file as well")
            links.append(f"- {markdown.link(page.title, path)}")
            files[path] = page.text
            files |= {f"{run.loop}/{name}": svg for name, svg in page.charts.items()}
        section = loops.setdefault(run.loop, [f"## On {run.loop}"])
        section += [f"{origin}; {_environment(run)}.", "\n".join(links)]
    again = ["## How to run it again", "\n".join(["```sh", *_commands(runs), "```"])]
    index = chain(["# Benchmarks", INTRODUCTION], *loops.values(), again)
    return {"README.md": markdown.page(*index)} | files


def _environment(run: Run) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in run.packages.items())
    machine = run.machine
    # The version is without the compiler and the date of the build.
    return (
        f"Python {run.python.split()[0]}, {packages}; {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}; up to {run.repetitions} repetitions"
    )


def _commands(runs: Mapping[Path, Run]) -> Iterator[str]:
    """The commands that write the same files, with the same benchmarks in them."""
    for file, run in runs.items():
        suites = " ".join(dict.fromkeys(result.suite for result in run.benchmarks)) or "load"
        names = " ".join(result.name for result in run.benchmarks)
        only = f" --only {names}" if names else ""
        full = " --full" if run.full else ""
        seconds = f" --seconds {run.load.seconds:g}" if run.load is not None else ""
        rest = f"--loop {run.loop} --repetitions {run.repetitions} --json {file.name}"
        yield f"python -m benchmarks {suites}{only}{full}{seconds} {rest}"
    yield f"python -m benchmarks report {' '.join(file.name for file in runs)}"
