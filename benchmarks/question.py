"""What is asked, of whom, and how the answer is set out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Sample = Mapping[str, float]
"""What one measurement gave: metric -> figure. Less is better, but in those that count per second."""

Build = Literal["compiled", "interpreted"]


@dataclass(frozen=True)
class Contender:
    """Something to measure, under a name that is unique within its section."""

    section: str
    name: str
    measure: Callable[[], Sample]
    # The build of purgatory's core that it has to be measured with; None where that makes no difference.
    build: Build | None = None


@dataclass(frozen=True)
class Column:
    """One metric of a table."""

    metric: str
    heading: str
    # Whether minimum and maximum are shown as well.
    spread: bool = True


@dataclass(frozen=True)
class Table:
    """Some metrics of all contenders; the first column is the one that the ratio is of."""

    title: str
    columns: tuple[Column, ...]
    note: str = ""


@dataclass(frozen=True)
class Question:
    """One question: contenders in sections, measured in turns, and the tables that answer it.

    The first contender of a section is what the others in it are set in relation to. One is not measured
    again when that would take it beyond `patience` seconds in all, however many repetitions are asked for.
    """

    name: str
    summary: str
    contenders: tuple[Contender, ...]
    tables: tuple[Table, ...]
    patience: float


@dataclass(frozen=True)
class Answer:
    """All samples of a question, those of a contender in the order they were taken."""

    question: Question
    samples: Mapping[Contender, list[Sample]]

    def reference(self, contender: Contender) -> Contender:
        """The first contender of the same section."""
        return next(other for other in self.question.contenders if other.section == contender.section)

    def figures(self, contender: Contender, metric: str) -> list[float]:
        """One metric in all repetitions of a contender; none where it does not apply."""
        return [sample[metric] for sample in self.samples[contender] if metric in sample]

    def ratios(self, contender: Contender, metric: str) -> list[float]:
        """The metric in relation to the reference's, each within its own repetition.

        A contender that was measured less often has the first so many; a reference of zero gives none.
        """
        own, other = self.figures(contender, metric), self.figures(self.reference(contender), metric)
        return [figure / base for figure, base in zip(own, other, strict=False) if base]
