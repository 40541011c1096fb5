"""The page that leads to all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.report import markdown
from benchmarks.report.run import Run

INTRODUCTION = """\
Purgatory side by side with what people use instead, and with the designs that came before it. All pages
here are written by `python -m benchmarks.report`, from what the runs below have measured.

## How to read it

- Figures are medians (minimum-maximum) of interleaved repetitions: each contender is measured once, then each
  a second time, and so on, so that a slow spell of the machine falls on all of them. Less is better, but in
  what is counted per second.
- Compare ratios, within one run. Each is of two figures from the same repetition. Bare times are this
  machine's, on that day, and drift by a factor of two.
- Bars are ratios to the first row of the section, which is the line at 1; whiskers reach from minimum to
  maximum. What ends left of the line costs less than purgatory does.
- Where lines are drawn against n, what stays flat costs the same however much waits.
"""


def index(runs: Sequence[tuple[Run, Mapping[str, str]]]) -> str:
    """The page, with each run's links: file -> what it shows."""
    paragraphs = ["# Benchmarks", INTRODUCTION]
    for loop in dict.fromkeys(run.loop for run, _ in runs):
        paragraphs.append(f"## On {markdown.escape(loop)}")
        for run, links in runs:
            if run.loop == loop:
                paragraphs += [f"{run.origin}; {run.environment}.", _links(links)]
    commands = _commands([run for run, _ in runs])
    return markdown.page(*paragraphs, "## How to run it again", "\n".join(["```sh", *commands, "```"]))


def _links(files: Mapping[str, str]) -> str:
    return "\n".join(f"- {markdown.link(shows, file)}" for file, shows in files.items())


def _commands(runs: Sequence[Run]) -> Iterator[str]:
    """What would write the same files, with the same questions in them."""
    for run in runs:
        written = f"--repetitions {run.repetitions} --json {run.file.name}"
        names = " ".join(answer.question.name for answer in run.answers)
        if run.command is not None:
            yield f"{run.command} {names} {written}"
        elif run.answers:
            full = "--full " if run.full else ""
            yield f"python -m benchmarks {names} {full}--loop {run.loop} {written}"
        elif run.load is not None:
            yield f"python -m benchmarks.load --loop {run.loop} --seconds {run.load.seconds:g} {written}"
    yield f"python -m benchmarks.report {' '.join(run.file.name for run in runs)}"
