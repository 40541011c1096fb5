"""The HTML of the page. `test_browser` renders it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import pytest
import vl_convert

from purgatory.pipeline.report import page as pages
from purgatory.pipeline.report.markup import PageColumn, table
from tests.pipeline.report.sample_findings import HOSTILE, everything, findings


@pytest.fixture(scope="module", autouse=True)
def libraries() -> Iterator[None]:
    """A fake: the real libraries take a second to bundle."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "javascript_bundle", lambda snippet, vl_version: f"/* {snippet} */")
        yield


@pytest.fixture(scope="module")
def page() -> str:
    return pages.page(everything(), ["kinds", "minutes"])


def test_the_page_contains_only_its_two_scripts(page: str) -> None:
    assert len(re.findall(r"<script", page)) == len(re.findall(r"</script", page)) == 2
    assert HOSTILE not in page


def test_every_finding_has_its_chart(page: str) -> None:
    parts = re.findall(r'<section id="([^"]*)"(.*?)</section>', page, flags=re.DOTALL)
    charts = [(name, re.findall(r'<div class="chart" id="([^"]*)">', part)) for name, part in parts]

    assert charts == [
        ("verdicts", []),
        ("overview", []),
        ("waits", ["survival", "survival-tail"]),
        ("timeouts", ["timeouts-chart"]),
        ("time", ["ended-0", "ended-1", "ended-2", "expired", "waited", "pending", "late"]),
        ("keys", ["keys-operations", "keys-waited-us"]),
        ("fan-out", ["fan-out-chart"]),
        ("wheel", ["wheel-0"]),
        ("compacted", []),
    ]


def test_each_chart_has_an_element(page: str) -> None:
    (text,) = re.findall(r'<script type="application/json" id="charts">(.*)</script>', page)
    charts = json.loads(text)

    assert sorted(charts) == sorted(re.findall(r'<div class="chart" id="([^"]*)">', page))
    assert HOSTILE in str(charts)
    assert "$schema" not in text


def test_ids_are_unique(page: str) -> None:
    assert set(Counter(re.findall(r' id="([^"]*)"', page)).values()) == {1}


def test_every_section_is_linked(page: str) -> None:
    linked = re.findall(r'<a href="#([^"]*)">', page)

    assert linked == re.findall(r'<section id="([^"]*)"', page)


def test_the_files_of_the_tables_are_linked(page: str) -> None:
    assert re.findall(r'href="(tables/[^"]*)"', page) == [
        f"tables/{name}.{kind}" for name in ("kinds", "minutes") for kind in ("parquet", "json")
    ]


def test_without_tables_there_are_no_links() -> None:
    assert "tables/" not in pages.page(findings())


def test_a_table_has_headings_for_columns_and_rows() -> None:
    columns = [
        PageColumn("a<b", lambda row: str(row[0]), number=False),
        PageColumn("n", lambda row: str(row[1]), lambda row: "&" * row[1]),
    ]
    html = table('"rows"', columns, [("<i>", 0), ("x", 1)])

    assert "<span>&quot;rows&quot;</span></caption>" in html
    assert '<tr><th scope="col">a&lt;b</th><th scope="col" class="number">n</th></tr>' in html
    assert '<tr><th scope="row">&lt;i&gt;</th><td class="number">0</td></tr>' in html
    assert '<tr><th scope="row">x</th><td class="number">1<small>&amp;</small></td></tr>' in html
