"""How figures grow with N, where a question asks the same for several."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.question import Answer, Table

# In the name of a section ("callback style, N = 10,000") or in the heading of a column ("n = 1,000").
SIZE = re.compile(r"[,;]?\s*\bn = (\d+(?:,\d{3})*)", re.IGNORECASE)

Found = dict[str, dict[str, dict[int, list[float]]]]
"""Where -> contender -> N -> figures."""


@dataclass(frozen=True)
class Line:
    """One contender's figures, for each N in the order of the repetitions; the Ns ascending."""

    name: str
    figures: Mapping[int, list[float]]

    def ratios(self, size: int) -> list[float]:
        """The figures for `size` in relation to those for the smallest N, each within its own repetition."""
        smallest = self.figures[next(iter(self.figures))]
        return [figure / base for figure, base in zip(self.figures[size], smallest, strict=False) if base]


@dataclass(frozen=True)
class Growth:
    """Contenders that were measured at several N alike."""

    # What they have in common beside the N; may be empty.
    where: str
    lines: tuple[Line, ...]

    @property
    def names(self) -> list[str]:
        """The contenders."""
        return [line.name for line in self.lines]

    @property
    def sizes(self) -> list[int]:
        """All Ns, ascending."""
        return sorted({size for line in self.lines for size in line.figures})


def split_size(text: str) -> tuple[str, int | None]:
    """The text without its N, and that."""
    match = SIZE.search(text)
    if match is None:
        return text, None
    return SIZE.sub("", text, count=1).strip(" ,;"), int(match[1].replace(",", ""))


def over_sections(answer: Answer, table: Table) -> list[Growth]:
    """That of the table's first column, over sections which differ in nothing but their N."""
    metric = table.columns[0].metric
    found: Found = {}
    for contender in answer.question.contenders:
        section, size = split_size(contender.section)
        figures = answer.figures(contender, metric)
        if size is not None and figures:
            found.setdefault(section, {}).setdefault(contender.name, {})[size] = figures
    return _growths(found)


def over_columns(answer: Answer, table: Table) -> list[Growth]:
    """That over columns which differ in nothing but their N, for each section."""
    found: Found = {}
    for contender in answer.question.contenders:
        for column in table.columns:
            heading, size = split_size(column.heading)
            figures = answer.figures(contender, column.metric)
            if size is not None and figures:
                where = ", ".join(filter(None, (contender.section, heading)))
                found.setdefault(where, {}).setdefault(contender.name, {})[size] = figures
    return _growths(found)


def _growths(found: Found) -> list[Growth]:
    """Without those where there is only one N."""
    growths = (
        Growth(where, tuple(Line(name, dict(sorted(sizes.items()))) for name, sizes in contenders.items()))
        for where, contenders in found.items()
    )
    return [growth for growth in growths if len(growth.sizes) > 1]
