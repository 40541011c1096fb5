"""The pages and charts of some runs, and the command that writes them."""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path

from benchmarks.harness import record, tables
from benchmarks.harness.benchmark import Column, Result, Row, Table
from benchmarks.harness.charts import Lines, Panel, bar_chart, line_chart
from benchmarks.harness.record import Run
from benchmarks.suites.load import curves, limits, saturated, target

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
- `python -m benchmarks --instructions` counts the processor's instructions in place of time, for a wait and
  for a heartbeat. Such counts are the same on a busy machine. It needs valgrind.
"""
# In the name of a section ("callback style, N = 10,000") or in the heading of a column ("n = 1,000").
SIZE = re.compile(r"[,;]?\s*\bn = (\d+(?:,\d{3})*)", re.IGNORECASE)
# Markup in a name or a title; an underscore within a word is none.
MARKUP = re.compile(r"[\\`*<\[\]|]")
INDEX = "[All benchmarks](../README.md)"
LOAD_TITLE = "Requests at ever higher rates, until it saturates"
LOAD_HOW_TO_READ = (
    "For {seconds:g} s requests come at the target rate, and complete after log-normally distributed times, "
    "or expire. Points are medians of the repetitions, error bars reach from minimum to maximum. A saturated "
    "design did not keep up with the target; it then does not get the rest of the requests."
)
LOAD_PANELS = {
    "achieved": "achieved, requests/s",
    "cpu_seconds": "processor time of a run, seconds",
    "late_p99_ms": "p99 lateness, milliseconds",
    "held": "watch-list entries held at the end",
}


@dataclass(frozen=True)
class Page:
    """A page, with the SVG charts beside it by their names."""

    name: str
    title: str
    text: str
    charts: Mapping[str, str]


def main(arguments: Sequence[str]) -> None:
    """Write the pages for the files named on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks report",
        description="Writes the tables and charts of recorded runs as pages of Markdown.",
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
        load = [result for result in run.benchmarks if result.suite == "load"]
        pages = [benchmark_page(origin, result) for result in run.benchmarks if result.suite != "load"]
        if load:
            pages.append(load_page(origin, run.seconds, load))
        links = []
        for page in pages:
            path = f"{run.loop}/{page.name}.md"
            if path in files:
                raise RuntimeError(f"{file}: {page.name} on {run.loop} is in another file as well")
            links.append(f"- [{escape(page.title)}]({path})")
            files[path] = page.text
            files |= {f"{run.loop}/{name}": svg for name, svg in page.charts.items()}
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
        names = " ".join(result.name for result in run.benchmarks if result.suite != "load")
        only = f" --only {names}" if names else ""
        full = " --full" if run.full else ""
        seconds = f" --seconds {run.seconds:g}" if run.seconds is not None else ""
        rest = f"--loop {run.loop} --repetitions {run.repetitions} --json {file.name}"
        yield f"python -m benchmarks {suites}{only}{full}{seconds} {rest}"
    yield f"python -m benchmarks report {' '.join(file.name for file in runs)}"


def benchmark_page(origin: str, result: Result) -> Page:
    name = slug(result.name)
    title = result.summary[0].upper() + result.summary[1:]
    charts: dict[str, str] = {}
    paragraphs = [f"# {escape(title)}", f"{origin}. {INDEX}", tables.HOW_TO_READ]
    for table in result.tables:
        stem, heading = f"{name}-{slug(table.columns[0].metric)}", table.columns[0].heading
        paragraphs.append(f"## {escape(table.title)}")
        sections = ratios_by_section(result, table)
        if sections:
            label = f"{heading}: ratio to the first of each section"
            charts[f"{stem}.svg"] = bar_chart(sections, label)
            alt = escape(f"Bar chart of {label}; the figures are in the table.")
            paragraphs.append(f"![{alt}]({stem}.svg)")
        headings = ["", *map(escape, tables.headings(table))]
        rows = tables.rows(result, table, list)
        shown = ([escape(name), *cells] if cells else [f"**{escape(name)}**"] for name, *cells in rows)
        paragraphs.append(grid(headings, shown))
        paragraphs.append(escape(table.note))
        over_sections = growths(result, table.columns[:1], lambda row, _: row.section)
        lines = over_sections or growths(
            result, table.columns, lambda row, column: f"{row.section}, {column.heading}"
        )
        if lines:
            panels = [Panel(where, each) for where, each in lines.items()]
            file, quantity = f"{stem}-growth.svg", table.title.rpartition(": ")[2]
            charts[file] = line_chart(panels, "n", f"{heading}, {quantity}" if over_sections else quantity)
            names = "; ".join(dict.fromkeys(name for panel in panels for name in panel.lines))
            alt = escape(f"Lines of {quantity} against n for {names}.")
            paragraphs.append(f"![{alt}]({file})")
        if over_sections:
            paragraphs.append(f"In relation to the smallest n:\n\n{_growth_table(over_sections)}")
    return Page(name, title, joined(*paragraphs), charts)


def ratios_by_section(result: Result, table: Table) -> Mapping[str, Mapping[str, Sequence[float]]]:
    """The ratios of the table's first column, in sections with something to compare."""
    metric = table.columns[0].metric
    sections = {
        section: {row.name: ratios for row in rows if (ratios := result.ratios(row, metric))}
        for section, rows in result.sections(table).items()
    }
    return {section: bars for section, bars in sections.items() if len(bars) > 1}


def split_size(text: str) -> tuple[str, int | None]:
    """The text without its n, and the n."""
    match = SIZE.search(text)
    if match is None:
        return text, None
    return SIZE.sub("", text, count=1).strip(" ,;"), int(match[1].replace(",", ""))


def growths(
    result: Result, columns: Sequence[Column], label: Callable[[Row, Column], str]
) -> Mapping[str, Lines]:
    """The figures by n, where labels differ only in their n: by the rest of the label and the case."""
    found: dict[str, dict[str, dict[float, list[float]]]] = {}
    for row, column in product(result.cases, columns):
        where, size = split_size(label(row, column))
        figures = row.figures(column.metric)
        if size is not None and figures:
            found.setdefault(where, {}).setdefault(row.name, {})[size] = figures
    return {
        where: {name: dict(sorted(line.items())) for name, line in lines.items()}
        for where, lines in found.items()
        if len({size for line in lines.values() for size in line}) > 1
    }


def ratios_to_smallest(line: Mapping[float, Sequence[float]], size: float) -> list[float]:
    """The figures for `size` in relation to those for the smallest n, each within its own repetition."""
    pairs = zip(line.get(size, ()), line[min(line)], strict=False)
    return [figure / base for figure, base in pairs if base]


def _growth_table(growths: Mapping[str, Lines]) -> str:
    sizes = sorted({size for lines in growths.values() for line in lines.values() for size in line})
    rows: list[Sequence[str]] = []
    for where, lines in growths.items():
        if where:
            rows.append([f"**{escape(where)}**"])
        for name, line in lines.items():
            ratios = (ratios_to_smallest(line, size) for size in sizes)
            shown = [tables.spread(each) for each in ratios]
            shown[sizes.index(min(line))] = "1"
            rows.append([escape(name), *shown])
    return grid(["", *(f"n = {size:,}" for size in sizes)], rows)


def load_page(origin: str, seconds: float | None, results: Sequence[Result]) -> Page:
    charts: dict[str, str] = {}
    paragraphs = [f"# {LOAD_TITLE}", f"{origin}. {INDEX}", LOAD_HOW_TO_READ.format(seconds=seconds)]
    for result in results:
        paragraphs += [f"## {escape(result.name)}", result.summary]
        file = f"load-{slug(result.name)}.svg"
        charts[file] = _load_chart(result)
        alt = "Achieved rate, processor time, p99 lateness and entries held against the target rate"
        paragraphs.append(f"![{escape(f'{alt}, {result.name}.')}]({file})")
        *designs, _ = curves(result).items()
        rows = [[escape(name), *limits(curve)] for name, curve in designs]
        paragraphs.append(grid(["", "keeps up to, requests/s", "saturated at"], rows))
        headings = ["target/s", *(column.heading for column in result.tables[0].columns)]
        figures = grid(headings, _load_rows(result))
        paragraphs.append(f"<details>\n<summary>All figures</summary>\n\n{figures}\n</details>")
    return Page("load", LOAD_TITLE, joined(*paragraphs), charts)


def _load_rows(result: Result) -> Iterator[Sequence[str]]:
    for name, curve in curves(result).items():
        yield [f"**{escape(name)}**"]
        for row in curve:
            rate = f"{row.name} (saturated)" if saturated(row) else row.name
            yield [rate, *(tables.spread(row.figures(each.metric)) for each in result.tables[0].columns)]


def _load_chart(result: Result) -> str:
    """All designs, and the generator, whose own figures limit what the designs can reach."""
    panels = []
    for metric, title in LOAD_PANELS.items():
        lines: dict[str, dict[float, list[float]]] = {}
        for row in result.cases:
            figures = row.figures(metric)
            if figures:
                lines.setdefault(row.section, {})[target(row.name)] = figures
        # The others are in proportion to the rate as long as a design keeps up, which linear scales show.
        logarithmic = metric == "late_p99_ms"
        panels.append(Panel(title, lines, logarithmic_x=False, logarithmic_y=logarithmic))
    return line_chart(panels, "target, requests/s")


def escape(text: str) -> str:
    """The text without markup, on one line."""
    return MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def grid(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its first column to the left and the others to the right. Short rows are filled up."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    filled = ([*cells, *[""] * (len(headings) - len(cells))] for cells in lines)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in filled)


def joined(*paragraphs: str) -> str:
    """The paragraphs that are not empty, with an empty line between them."""
    return "\n\n".join(paragraph.rstrip("\n") for paragraph in paragraphs if paragraph) + "\n"


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
