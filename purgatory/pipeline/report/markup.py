"""Sections of the page, and pieces of their HTML. All data is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from shlex import quote
from typing import Any

from purgatory.pipeline.report.chart import Chart


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page: a title, charts, and HTML between them."""

    name: str
    title: str
    parts: Sequence[str | Chart]

    @property
    def charts(self) -> list[Chart]:
        return [part for part in self.parts if isinstance(part, Chart)]


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A column of a table: its title, and the function that makes the text of a row's cell."""

    title: str
    text: Callable[[Any], str]
    # A second, smaller line.
    detail: Callable[[Any], str] | None = None
    number: bool = True


def text_column(title: str, text: Callable[[Any], str]) -> PageColumn:
    """A column of text, aligned to the left."""
    return PageColumn(title, text, number=False)


def count_column(title: str, field: str) -> PageColumn:
    """A column of whole numbers, with thousands separators."""
    return PageColumn(title, lambda row: f"{row[field]:,}")


def section(section: Section) -> str:
    """The element of a section, with its title and its parts."""
    parts = (part if isinstance(part, str) else figure(part) for part in section.parts)
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">\n'
        f'<h2 id="{section.name}-title">{escape(section.title)}</h2>\n' + "\n".join(parts) + "\n</section>\n"
    )


def table(caption: str, columns: Iterable[PageColumn], rows: Iterable[Any]) -> str:
    """A table in a box that scrolls if the page is too narrow.

    The first column is the header of the rows. Rows are any objects that the columns accept.
    """
    columns = list(columns)
    head = "".join(f'<th scope="col"{_aligned(column)}>{escape(column.title)}</th>' for column in columns)
    body = "\n".join(
        "<tr>"
        + "".join(_cell(column, row, "td" if at else "th") for at, column in enumerate(columns))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>\n'
        f"<caption><span>{escape(caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
        "</table></div>"
    )


def card(subject: str, title: str, parts: Iterable[str], look: str) -> str:
    """A box about a subject: a title and some parts. Its look is a class of the style sheet."""
    return (
        f'<div class="box {look}"><h3>{escape(subject)}: <strong>{escape(title)}</strong></h3>\n'
        + "\n".join(parts)
        + "\n</div>"
    )


def bar(points: Mapping[str, tuple[float, str]]) -> str:
    """A bar from zero with named points: a number for the place, and its text."""
    end = max(at for at, _ in points.values())
    marks = "".join(
        f'<li{_class("late" if at > end / 2 else "")} style="--at: {at / end:.4f}">'
        f"<b>{escape(name)}</b> {escape(text)}</li>"
        for name, (at, text) in sorted(points.items(), key=lambda each: each[1][0])
    )
    return f'<ul class="bar">{marks}</ul>'


def collapsed(summary: str, content: str) -> str:
    """Content that the reader has to open."""
    return f"<details><summary>{escape(summary)}</summary>\n{content}\n</details>"


def paragraph(text: str, look: str = "") -> str:
    return f"<p{_class(look)}>{escape(text)}</p>"


def run_hint(why: str, name: str, dataset: str) -> str:
    """A note that something is missing, with the command that makes it."""
    line = f"purgatory-pipeline {name} {quote(dataset)}"
    return f'<p class="missing">{escape(why)} Run: <code>{escape(line)}</code></p>'


def bullets(texts: Iterable[str]) -> str:
    return "<ul>\n" + "\n".join(f"<li>{escape(text)}</li>" for text in texts) + "\n</ul>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Pairs of a name and a value, side by side."""
    return (
        '<dl class="facts">\n'
        + "\n".join(f"<div><dt>{escape(term)}</dt><dd>{escape(value)}</dd></div>" for term, value in pairs)
        + "\n</dl>"
    )


def figure(figure: Chart) -> str:
    """The element in which a script draws a chart. The title, the note and the legend need no script."""
    legend = "".join(
        f'<li><span class="mark {mark.look}" style="--colour: {mark.colour}"></span>{escape(mark.text)}</li>'
        for mark in figure.legend
    )
    return (
        f'<figure aria-labelledby="{figure.name}-title">\n'
        f'<figcaption><h3 id="{figure.name}-title">{escape(figure.title)}</h3>'
        f"{paragraph(figure.note) if figure.note else ''}"
        + (f'<ul class="legend">{legend}</ul>' if legend else "")
        + "</figcaption>\n"
        f'<div class="chart" id="{figure.name}"></div>\n{_in_words(figure)}</figure>'
    )


def _in_words(figure: Chart) -> str:
    columns = (
        text_column("of", lambda fact: str(fact[0])),
        text_column("value", lambda fact: str(fact[1])),
    )
    return collapsed("The same in words", table(figure.title, columns, figure.says.items()))


def _cell(column: PageColumn, row: Any, tag: str) -> str:
    scope = ' scope="row"' if tag == "th" else ""
    detail = escape(column.detail(row)) if column.detail else ""
    small = f"<small>{detail}</small>" if detail else ""
    return f"<{tag}{scope}{_aligned(column)}>{escape(column.text(row))}{small}</{tag}>"


def _aligned(column: PageColumn) -> str:
    return _class("number" if column.number else "")


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
