"""Text in Markdown."""

import re
from collections.abc import Iterable, Sequence

# Markup in a name or a title; an underscore within a word is none.
MARKUP = re.compile(r"[\\`*<\[\]|]")


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
