"""The text and the charts of a section."""

from __future__ import annotations

import re

from purgatory.pipeline.report.markup import Section


def words(section: Section) -> str:
    """The text of a section's HTML, without charts."""
    html = "\n".join(part for part in section.parts if isinstance(part, str))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def names(section: Section) -> list[str]:
    return [figure.name for figure in section.charts]
