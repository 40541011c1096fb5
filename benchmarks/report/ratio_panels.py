"""Which ratios are shown in which panel, and which panels stand side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.question import Answer, Table
from benchmarks.report.alike import groups, same_contenders
from benchmarks.report.growth import split_size
from benchmarks.report.spread import Spread

ABREAST = 3


@dataclass(frozen=True)
class Panel:
    """One section: the ratios of its contenders, the reference first."""

    # The section's name without its N, and that, where it has one.
    where: str
    size: int | None
    ratios: Mapping[str, Spread]


@dataclass(frozen=True)
class Row:
    """Panels side by side that share the names of their contenders at the left."""

    names: tuple[str, ...]
    panels: tuple[Panel, ...]

    def title(self, place: int) -> str:
        """That of one panel; what is said of all of them, which differ in their N, is said of the first."""
        panel = self.panels[place]
        if panel.size is None:
            return panel.where
        size = f"n = {panel.size:,}"
        return f"{panel.where}\n{size}" if panel.where and place == 0 else size


def rows(answer: Answer, table: Table) -> list[Row]:
    """All panels for the table's first column, those together which have their contenders in common."""
    return [row for group in groups(_panels(answer, table), _belong_together) for row in _rows(group)]


def _panels(answer: Answer, table: Table) -> Iterator[Panel]:
    """The sections in which there is something to compare."""
    metric = table.columns[0].metric
    sections: dict[str, dict[str, Spread]] = {}
    for contender in answer.question.contenders:
        ratios = answer.ratios(contender, metric)
        if ratios:
            sections.setdefault(contender.section, {})[contender.name] = Spread.of(ratios)
    return (Panel(*split_size(section), ratios) for section, ratios in sections.items() if len(ratios) > 1)


def _belong_together(panel: Panel, other: Panel) -> bool:
    """Whether they differ in their N alone; or have none, and the same contenders."""
    if panel.size is not None or other.size is not None:
        return panel.where == other.where
    return same_contenders(panel.ratios, other.ratios)


def _rows(group: Sequence[Panel]) -> Iterator[Row]:
    """Evenly filled, by ascending n where they have one."""
    group = sorted(group, key=lambda panel: panel.size or 0)
    count = -(-len(group) // ABREAST)
    length = -(-len(group) // count)
    for first in range(0, len(group), length):
        panels = tuple(group[first : first + length])
        names = dict.fromkeys(name for panel in panels for name in panel.ratios)
        yield Row(tuple(names), panels)
