"""All pages and charts of some runs, and the command that writes them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.harness import record
from benchmarks.harness.record import RecordError, Run
from benchmarks.harness.report import markdown
from benchmarks.harness.report.benchmark_page import benchmark_page
from benchmarks.harness.report.load_page import load_page
from benchmarks.harness.report.markdown import Page

DIRECTORY = Path("docs/benchmarks")
EXIT_CODE = 2
EXAMPLES = """\
example:
  python -m benchmarks waits --full --json waits.json
  python -m benchmarks load --full --json load.json
  python -m benchmarks report waits.json load.json
"""
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
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a run that the benchmarks wrote with --json"
    )
    parser.add_argument(
        "--into", type=Path, default=DIRECTORY, metavar="DIRECTORY", help="default: %(default)s"
    )
    options = parser.parse_args(arguments)
    try:
        files = site([record.read(file) for file in options.files])
        for path, text in files.items():
            file = options.into / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    except RecordError as error:
        parser.exit(EXIT_CODE, f"{error}\n")
    except OSError as error:
        parser.exit(EXIT_CODE, f"{error.filename}: cannot be written ({error.strerror})\n")
    print(f"{options.into / 'README.md'}, and {len(files) - 1} files beside it")


def site(runs: Sequence[Run]) -> dict[str, str]:
    """Every file's text by its path: the index, and a directory for each loop.

    Raises RecordError when two runs hold the same benchmark on the same loop.
    """
    files: dict[str, str] = {}
    links: list[tuple[Run, dict[str, str]]] = []
    shown: dict[str, Run] = {}
    for run in runs:
        linked: dict[str, str] = {}
        directory = markdown.slug(run.loop)
        for page in _pages(run):
            path = f"{directory}/{page.name}.md"
            if path in shown:
                raise RecordError(f"{run.file}: {page.name} on {run.loop} is in {shown[path].file} as well")
            shown[path] = run
            linked[path] = page.title
            files[path] = page.text
            files |= {f"{directory}/{name}": svg for name, svg in page.charts.items()}
        links.append((run, linked))
    return {"README.md": _index(links)} | files


def _pages(run: Run) -> Iterator[Page]:
    for result in run.results:
        yield benchmark_page(_origin(run), result)
    if run.load is not None:
        yield load_page(_origin(run), run.load)


def _origin(run: Run) -> str:
    commit = f"commit {run.commit}" if run.commit else "outside of a checkout"
    return f"Measured on {run.loop}, {run.written.partition('T')[0]}, {commit}"


def _environment(run: Run) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in run.packages.items())
    machine = run.machine
    return (
        f"Python {run.python}, {packages}; {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}; up to {run.repetitions} repetitions"
    )


def _index(runs: Sequence[tuple[Run, Mapping[str, str]]]) -> str:
    """The page that links to all others, with the pages of each run."""
    paragraphs = ["# Benchmarks", INTRODUCTION]
    for loop in dict.fromkeys(run.loop for run, _ in runs):
        paragraphs.append(f"## On {markdown.escape(loop)}")
        for run, pages in runs:
            if run.loop == loop:
                paragraphs.append(f"{_origin(run)}; {_environment(run)}.")
                paragraphs.append(
                    "\n".join(f"- {markdown.link(title, file)}" for file, title in pages.items())
                )
    commands = _commands([run for run, _ in runs])
    return markdown.page(*paragraphs, "## How to run it again", "\n".join(["```sh", *commands, "```"]))


def _commands(runs: Sequence[Run]) -> Iterator[str]:
    """The commands that write the same files, with the same benchmarks in them."""
    for run in runs:
        suites = " ".join(dict.fromkeys(result.suite for result in run.results)) or "load"
        names = " ".join(result.benchmark.name for result in run.results)
        only = f" --only {names}" if names else ""
        full = " --full" if run.full else ""
        seconds = f" --seconds {run.load.seconds:g}" if run.load is not None else ""
        rest = f"--loop {run.loop} --repetitions {run.repetitions} --json {run.file.name}"
        yield f"python -m benchmarks {suites}{only}{full}{seconds} {rest}"
    yield f"python -m benchmarks report {' '.join(run.file.name for run in runs)}"
