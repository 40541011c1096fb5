"""The glossary explains each term once."""

from __future__ import annotations

import re
from collections import Counter

from tests.docs.programs import DOCS

GLOSSARY = (DOCS / "glossary.md").read_text()


def test_no_term_is_explained_twice() -> None:
    terms = Counter(
        term
        for terms in re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY, flags=re.MULTILINE)
        for term in terms.split(", ")
    )
    assert len(terms) > 100
    assert [term for term, count in terms.items() if count > 1] == []
