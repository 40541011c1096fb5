"""The pages of some runs, and the command that writes them."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from benchmarks.harness import record, tables
from benchmarks.harness.benchmark import Result
from benchmarks.harness.markdown import escape, grid, joined, slug
from benchmarks.harness.record import Run

INTRODUCTION = """\
Purgatory side by side with what people use instead, and with the designs that came before it. All pages
here are written by `python -m benchmarks report`, from what the runs below have measured.

## How to read it

- Figures are medians (minimum-maximum) of interleaved repetitions: each case is measured once, then each
  a second time, and so on, so that a slow spell of the machine falls on all of them. Less is better,
  except in figures per second.
- Compare ratios, within one run. Each is of two figures from the same repetition. Bare times are this
  machine's, on that day, and drift by a factor of two.
- `python -m benchmarks --instructions` counts the processor's instructions in place of time, for a wait and
  for a heartbeat. Such counts are the same on a busy machine. It needs valgrind.
"""
INDEX = "[All benchmarks](../README.md)"


@dataclass(frozen=True)
class Page:
    name: str
    title: str
    text: str


def main(arguments: Sequence[str]) -> None:
    """Write the pages for the files named on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks report", description="Writes the tables of recorded runs as Markdown."
    )
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="a run that the benchmarks wrote with --json")
    add("--into", type=Path, default="docs/benchmarks", metavar="DIRECTORY", help="default: %(default)s")
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
        links = []
        for page in (benchmark_page(origin, result) for result in run.benchmarks):
            path = f"{run.loop}/{page.name}.md"
            if path in files:
                raise RuntimeError(f"{file}: {page.name} on {run.loop} is in another file as well")
            links.append(f"- [{escape(page.title)}]({path})")
            files[path] = page.text
        section = loops.setdefault(run.loop, [f"## On {run.loop}"])
        section += [f"{origin}; {_environment(run)}.", "\n".join(links)]
    again = ["## How to run it again", "\n".join(["```sh", *_commands(runs), "```"])]
    index = chain(["# Benchmarks", INTRODUCTION], *loops.values(), again)
    return {"README.md": joined(*index)} | files


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
        suites = " ".join(dict.fromkeys(result.suite for result in run.benchmarks))
        names = " ".join(result.name for result in run.benchmarks)
        full = " --full" if run.full else ""
        seconds = f" --seconds {run.seconds:g}" if run.seconds is not None else ""
        rest = f"--loop {run.loop} --repetitions {run.repetitions} --json {file.name}"
        yield f"python -m benchmarks {suites} --only {names}{full}{seconds} {rest}"
    yield f"python -m benchmarks report {' '.join(file.name for file in runs)}"


def benchmark_page(origin: str, result: Result) -> Page:
    title = result.summary[0].upper() + result.summary[1:]
    paragraphs = [f"# {escape(title)}", f"{origin}. {INDEX}", tables.HOW_TO_READ]
    for table in result.tables:
        headings = ["", *map(escape, tables.headings(table))]
        rows = tables.rows(result, table, list)
        shown = ([escape(name), *cells] if cells else [f"**{escape(name)}**"] for name, *cells in rows)
        paragraphs += [f"## {escape(table.title)}", grid(headings, shown), escape(table.note)]
    return Page(slug(result.name), title, joined(*paragraphs))
