"""The page of a question shows all of its figures, in words and in pictures."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.report.page import Page
from benchmarks.report.question_page import question_page
from benchmarks.report.run import read
from tests.benchmarks.report import records
from tests.benchmarks.report.records import Record, column, contender, question


def _page(directory: Path, asked: Record) -> Page:
    run = read(records.write(directory, records.run(asked)))
    return question_page(run, run.answers[0])


def test_the_table_has_ratios_medians_with_extremes_and_the_number_of_runs(tmp_path: Path) -> None:
    text = _page(tmp_path, records.parked()).text

    assert (
        "\n".join(
            [
                "|  | ratio | total | park | runs |",
                "| --- | ---: | ---: | ---: | ---: |",
                "| **callbacks** |  |  |  |  |",
                "| purgatory | 1 | 1.50 (1.00-2.00) | 0.90 | 2 |",
                "| Future | 3.50 (3.00-4.00) | 5.00 (4.00-6.00) | 2.50 | 2 |",
                "| bare | 0.25 (0.25-0.25) | 0.38 (0.25-0.50) | 0.10 | 2 |",
                "| **tasks** |  |  |  |  |",
                "| purgatory | 1 | 10.0 | - | 1 |",
                "| wait_for(event.wait(), t) | 3.00 | 30.0 | - | 1 |",
                "",
                r"10 \| key.",
            ]
        )
        in text
    )


def test_it_has_a_title_and_says_where_it_comes_from(tmp_path: Path) -> None:
    page = _page(tmp_path, records.parked())

    assert page.title == "Cost of a wait"
    assert page.text.startswith("# Cost of a wait\n\nMeasured on asyncio, 2026-11-21, commit 63f087b. ")


def test_its_pictures_are_embedded_and_described(tmp_path: Path) -> None:
    page = _page(tmp_path, records.parked())

    assert re.findall(r"^!\[(.+)\]\((.+)\)$", page.text, flags=re.MULTILINE) == [
        (
            "Bar chart of total in relation to purgatory, from 0.25 (bare) to 3.50 (Future); "
            "the figures are in the table.",
            "one-key-us.svg",
        )
    ]
    assert list(page.pictures) == ["one-key-us.svg"]


def test_the_bars_are_labelled_in_text(tmp_path: Path) -> None:
    svg = _page(tmp_path, records.parked()).pictures["one-key-us.svg"]

    labels = re.findall(r">([^<>\n]+)</text>", svg)
    for label in ("callbacks", "Future", "3.50", "0.25", "tasks", "wait_for(event.wait(), t)"):
        assert label in labels
    assert "not for this" not in labels
    assert "total: ratio to purgatory, logarithmic" in labels


def test_ratios_within_a_decade_are_on_a_linear_scale(tmp_path: Path) -> None:
    contenders = [contender("s", "purgatory", {"us": 1.0}), contender("s", "slow", {"us": 10.0})]

    svg = _page(tmp_path, question(contenders, column("us", "total"))).pictures["one-key-us.svg"]

    assert ">total: ratio to purgatory</text>" in svg


def test_where_nothing_is_compared_there_is_a_table_but_no_picture(tmp_path: Path) -> None:
    contenders = [contender("s", "purgatory", {"us": 0.0}), contender("s", "other", {"us": 1.0})]

    page = _page(tmp_path, question(contenders, column("us", "total")))

    assert not page.pictures
    assert "| other | - | 1.00 | 1 |\n" in page.text


def test_growth_over_sections_has_a_picture_and_a_table(tmp_path: Path) -> None:
    contenders = [
        contender(f"callbacks, N = {size}", name, {"us": figure}, {"us": 2 * figure})
        for size, factor in (("100", 1.0), ("1,000", 1.5))
        for name, figure in (("purgatory", factor), ("list", 3.0 * factor * factor))
    ]

    page = _page(tmp_path, question(contenders, column("us", "total")))

    assert list(page.pictures) == ["one-key-us.svg", "one-key-us-growth-1.svg"]
    assert (
        "![Lines of total, microseconds each against n from 100 to 1,000, on logarithmic scales, "
        "for purgatory; list.](one-key-us-growth-1.svg)"
    ) in page.text
    assert (
        "| **callbacks** |  |  |\n| purgatory | 1 | 1.50 (1.50-1.50) |\n| list | 1 | 2.25 (2.25-2.25) |"
        in page.text
    )


def test_growth_over_columns_has_a_picture_for_each_set_of_contenders(tmp_path: Path) -> None:
    sample = {"us_1000": 0.0, "us_100": 2.0}
    contenders = [
        contender("callbacks", "purgatory", sample),
        contender("callbacks", "heap", sample),
        contender("tasks", "purgatory", sample),
        contender("tasks", "wait_for", sample),
    ]

    columns = (column("us_1000", "n = 1,000"), column("us_100", "n = 100"))
    page = _page(tmp_path, question(contenders, *columns))

    assert list(page.pictures) == ["one-key-us-1000-growth-1.svg", "one-key-us-1000-growth-2.svg"]
    assert ">wait_for</text>" in page.pictures["one-key-us-1000-growth-2.svg"]
