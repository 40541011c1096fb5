"""Names and titles come out on GitHub as they are."""

from __future__ import annotations

import pytest

from benchmarks.report import markdown


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("asyncio.wait_for(event.wait(), t)", "asyncio.wait_for(event.wait(), t)"),
        ("a | b", r"a \| b"),
        ("2 * 3 < 7", r"2 \* 3 \< 7"),
        ("`x`[0]", r"\`x\`\[0\]"),
        ("two\nlines", "two lines"),
    ],
)
def test_markup_is_escaped(text: str, escaped: str) -> None:
    assert markdown.escape(text) == escaped


@pytest.mark.parametrize(
    ("text", "slug"),
    [("One key", "one-key"), ("p50/p75 20/60 ms", "p50-p75-20-60-ms"), ("../../x", "x"), ("/", "unnamed")],
)
def test_a_name_of_a_file_is_plain(text: str, slug: str) -> None:
    assert markdown.slug(text) == slug
