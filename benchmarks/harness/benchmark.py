"""A benchmark: cases that are measured in turns, and the tables that show their figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

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


def medians(**headings: str) -> tuple[Column, ...]:
    """Columns without minimum and maximum: metric=heading."""
    return tuple(Column(metric, heading, spread=False) for metric, heading in headings.items())


@dataclass(frozen=True)
class Table:
    """Some metrics of all cases. Ratios are those of the first column."""

    title: str
    columns: tuple[Column, ...]
    note: str = ""


@dataclass(frozen=True)
class Benchmark:
    """Cases in sections, and the tables that show them.

    The first case of a section is the reference of the others. A case is not measured again when that would
    take more than `time_limit` seconds in all, whatever number of repetitions was asked for.
    """

    name: str
    summary: str
    cases: tuple[Case, ...]
    tables: tuple[Table, ...]
    time_limit: float


@dataclass(frozen=True)
class Result:
    """All samples of a benchmark; those of a case are in the order of the repetitions."""

    suite: str
    benchmark: Benchmark
    samples: Mapping[Case, Sequence[Sample]]

    def reference(self, case: Case) -> Case:
        """The first case of the same section."""
        return next(other for other in self.benchmark.cases if other.section == case.section)

    def figures(self, case: Case, metric: str) -> list[float]:
        """One metric of a case in all repetitions; empty where the metric does not apply."""
        return [sample[metric] for sample in self.samples[case] if metric in sample]

    def ratios(self, case: Case, metric: str) -> list[float]:
        """The metric in relation to the reference's, each within one repetition.

        Repetitions that only one of the two has are left out, as are references of zero.
        """
        own, other = self.figures(case, metric), self.figures(self.reference(case), metric)
        return [figure / base for figure, base in zip(own, other, strict=False) if base]

    def shown_in(self, table: Table) -> list[Case]:
        """The cases that have a figure for the table."""
        return [
            case for case in self.samples if any(self.figures(case, each.metric) for each in table.columns)
        ]


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, minimum and maximum of some repetitions."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Self:
        """The spread of at least one figure."""
        return cls(statistics.median(figures), min(figures), max(figures))


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The smallest figure that at least so many percent of the figures do not exceed."""
    return ascending[max(1, math.ceil(len(ascending) * percent / 100)) - 1]
