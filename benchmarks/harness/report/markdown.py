"""Pieces of Markdown, as GitHub understands it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# Markup in a name or a title; an underscore within a word is none.
MARKUP = re.compile(r"[\\`*<\[\]|]")
INDEX = "[All benchmarks](../README.md)"


@dataclass(frozen=True)
class Page:
    """A page, with the SVG charts beside it by their names."""

    name: str
    title: str
    text: str
    charts: Mapping[str, str]


def escape(text: str) -> str:
    """The text without markup, on one line."""
    return MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its first column to the left and the others to the right. Short rows are filled up."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    filled = ([*cells, *[""] * (len(headings) - len(cells))] for cells in lines)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in filled)


def page(*paragraphs: str) -> str:
    """The paragraphs that are not empty, with an empty line between them."""
    return "\n\n".join(paragraph.rstrip("\n") for paragraph in paragraphs if paragraph) + "\n"


def slug(text: str) -> str:
    """The text as a part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
