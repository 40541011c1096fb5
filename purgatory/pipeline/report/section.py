"""A section of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from purgatory.pipeline.report.figure import Figure


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page: a title, charts, and HTML between them."""

    name: str
    title: str
    parts: Sequence[str | Figure]

    @property
    def figures(self) -> list[Figure]:
        return [part for part in self.parts if isinstance(part, Figure)]
