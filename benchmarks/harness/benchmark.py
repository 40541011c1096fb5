"""A benchmark: cases that are measured in turns, and the tables that show their figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

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


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The smallest figure that at least so many percent of the figures do not exceed."""
    return ascending[max(1, math.ceil(len(ascending) * percent / 100)) - 1]
