"""What is published for one question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page of Markdown, and the pictures beside it."""

    # Of the file, without its extension.
    name: str
    title: str
    text: str
    # File name -> SVG.
    pictures: Mapping[str, str]

    def files(self) -> Iterator[tuple[str, str]]:
        """Names and texts."""
        yield f"{self.name}.md", self.text
        yield from self.pictures.items()
