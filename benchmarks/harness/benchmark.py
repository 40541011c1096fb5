"""A benchmark: cases that are measured in turns, mostly at several sizes, and the tables of their figures."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Literal

Sample = Mapping[str, float]
"""The figures of one measurement, by metric. Less is better, except in metrics that count per second."""

Build = Literal["compiled", "interpreted"]


@dataclass(frozen=True)
class Case:
    """One alternative to measure. Its name is unique within its section."""

    section: str
    name: str
    measure: Callable[[], Sample]
    # The build of purgatory's core that the case needs; None where the build makes no difference.
    build: Build | None = None


@dataclass(frozen=True)
class Column:
    """One metric of a table, as median; with `spread` also minimum and maximum."""

    metric: str
    heading: str
    spread: bool = True


def spreads(size: int | None = None, /, **headings: str) -> tuple[Column, ...]:
    """Columns with minimum and maximum: metric=heading. The metrics are those at a size, if that is given."""
    return tuple(Column(at(metric, size), heading) for metric, heading in headings.items())


def medians(size: int | None = None, /, **headings: str) -> tuple[Column, ...]:
    """The same without minimum and maximum."""
    return tuple(Column(at(metric, size), heading, spread=False) for metric, heading in headings.items())


def at(metric: str, size: int | None) -> str:
    return metric if size is None else f"{metric}_{size}"


@dataclass(frozen=True)
class Table:
    """Some metrics of all cases. Ratios are those of the first column."""

    title: str
    columns: tuple[Column, ...]
    note: str = ""


@dataclass(frozen=True)
class Setting:
    """The options of a run, the same for all of its benchmarks."""

    loop: str = "asyncio"
    # The build that most cases need comes first.
    builds: Sequence[Build] = ("compiled", "interpreted")
    # All sizes and cases, which takes several times as long.
    full: bool = False
    # Those of the command line; in a benchmark, those that it measures. Ratios are at the first one.
    sizes: Sequence[int] = ()
    # The iterations within one measurement of something very short.
    times: int = 100_000
    # How long timeouts fall due, requests arrive or an idle process is watched.
    seconds: float = 1.0
    # For the pipeline: Spark's heap, and the directory of its files.
    memory: str = "4g"
    directory: str | None = None
    # Count the instructions of each wait, or heartbeat, in place of the usual figures.
    instructions: bool = False

    def case(
        self, section: str, name: str, measure: Callable[[], Sample], *, interpreted: bool = True
    ) -> Iterator[Case]:
        """One case; or one for each build, if its name begins with purgatory and `interpreted` is set."""
        if not name.startswith("purgatory"):
            yield Case(section, name, measure)
            return
        for build in self.builds if interpreted else self.builds[:1]:
            suffix = ", interpreted" if build == "interpreted" else ""
            yield Case(section, f"{name}{suffix}", measure, build)

    def cases(
        self, section: str, designs: Iterable[Any], measure: Callable[[Any], Sample], interpreted: bool = True
    ) -> Iterator[Case]:
        """The cases of a section: `measure` measures one of the designs, which have names."""
        for each in designs:
            yield from self.case(section, each.name, partial(measure, each), interpreted=interpreted)

    def sized(
        self,
        section: str,
        designs: Iterable[Any],
        measure: Callable[[Any, int], Sample],
        growing: Iterable[str],
        *,
        at_least: int = 0,
        interpreted: bool = True,
    ) -> Iterator[Case]:
        """The same, each at all sizes that are not too many for the design."""

        def measured(each: Any) -> Sample:
            return at_sizes(self.sizes, partial(measure, each), growing, at_least, each.most)

        return self.cases(section, designs, measured, interpreted=interpreted)

    def growth(self, metric: str) -> tuple[Column, ...]:
        """A column for each size, and one for the growth."""
        headline, *others = self.sizes
        return (
            Column(at(metric, headline), f"n = {headline:,}"),
            *(Column(at(metric, size), f"n = {size:,}", spread=False) for size in sorted(others)),
            *([Column(f"{metric}_growth", "growth", spread=False)] if others else []),
        )


def at_sizes(
    sizes: Sequence[int],
    measure: Callable[[int], Sample],
    growing: Iterable[str] = (),
    at_least: int = 0,
    at_most: int | None = None,
) -> Sample:
    """Measure each size up to `at_most`, the smallest first; `growing` metrics also get their growth.

    A small size is measured again until `at_least` operations have been measured, and counts with its mean:
    one round would be too short to stand out from what else the machine does.
    """
    sample: dict[str, float] = {}
    smallest, largest = min(sizes), max(sizes)
    within = sorted(size for size in sizes if at_most is None or size <= at_most)
    for size in within:
        rounds = [measure(size) for _ in range(max(1, at_least // max(1, size)))]
        for metric in rounds[0]:
            sample[at(metric, size)] = sum(figures[metric] for figures in rounds) / len(rounds)
    if smallest < largest and largest in within:
        for metric in growing:
            sample[f"{metric}_growth"] = sample[at(metric, largest)] / sample[at(metric, smallest)]
    return sample


Parts = Iterator[Case | Table]


@dataclass(frozen=True)
class Benchmark:
    """Cases in sections, and the tables that show them. `n` in the summary is the first size.

    The first case of a section is the reference of the others. A case is not measured again when that would
    take more than `time_limit` seconds in all, whatever number of repetitions was asked for.
    """

    name: str
    summary: str
    # The sizes of a quick and of a full run.
    quick: Sequence[int]
    full: Sequence[int]
    time_limit: float
    parts: Callable[[Setting], Parts]

    def made(self, setting: Setting) -> tuple[str, list[Case], list[Table]]:
        """The summary, the cases and the tables in this setting."""
        setting = replace(setting, sizes=setting.sizes or (self.full if setting.full else self.quick))
        parts = list(self.parts(setting))
        cases = [part for part in parts if isinstance(part, Case)]
        tables = [part for part in parts if isinstance(part, Table)]
        if setting.instructions:
            tables = [Table("Instructions of the processor for each", medians(instructions="count"))]
        return self.summary.format(n=setting.sizes[0]), cases, tables


def benchmark(
    name: str, summary: str, quick: Sequence[int], full: Sequence[int] = (), time_limit: float = 20.0
) -> Callable[[Callable[[Setting], Parts]], Benchmark]:
    """Declare a benchmark by a function that yields its cases and tables."""
    return partial(Benchmark, name, summary, quick, full or quick, time_limit)


def benchmarks_of(suite: str) -> Mapping[str, Benchmark]:
    """The benchmarks in a suite's module, by name, in the order of BENCHMARKS where it has that."""
    module = import_module(f"benchmarks.suites.{suite.replace('-', '_')}")
    found = getattr(module, "BENCHMARKS", vars(module).values())
    return {each.name: each for each in found if isinstance(each, Benchmark)}


@dataclass(frozen=True)
class Row:
    """A case that has been measured, with its samples in the order of the repetitions."""

    section: str
    name: str
    build: Build | None
    samples: Sequence[Sample]

    def figures(self, metric: str) -> list[float]:
        """One metric in all repetitions; empty where the metric does not apply."""
        return [sample[metric] for sample in self.samples if metric in sample]


@dataclass(frozen=True)
class Result:
    """A benchmark that has been measured. Records have the same fields."""

    suite: str
    name: str
    summary: str
    tables: Sequence[Table]
    cases: Sequence[Row]

    def reference(self, row: Row) -> Row:
        """The first case of the same section."""
        return next(other for other in self.cases if other.section == row.section)

    def ratios(self, row: Row, metric: str) -> list[float]:
        """The metric in relation to the reference's, each within one repetition.

        Repetitions that only one of the two has are left out, as are references of zero.
        """
        pairs = zip(row.figures(metric), self.reference(row).figures(metric), strict=False)
        return [figure / base for figure, base in pairs if base]

    def sections(self, table: Table) -> Mapping[str, list[Row]]:
        """The cases that have a figure for the table, by section."""
        sections: dict[str, list[Row]] = {}
        for row in self.cases:
            if any(row.figures(column.metric) for column in table.columns):
                sections.setdefault(row.section, []).append(row)
        return sections


def percentiles(milliseconds: Iterable[float], prefix: str = "") -> dict[str, float]:
    """The smallest figures that half of the figures, and 99 percent of them, do not exceed."""
    ascending = sorted(milliseconds)
    return {
        f"{prefix}p{percent}_ms": ascending[max(1, math.ceil(len(ascending) * percent / 100)) - 1]
        for percent in (50, 99)
    }
