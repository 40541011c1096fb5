"""What is compared alike stands side by side."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.report.ratio_panels import Row, rows
from benchmarks.report.run import read
from benchmarks.report.spread import Spread
from tests.benchmarks.report import records
from tests.benchmarks.report.records import column, contender, question


def _rows(directory: Path, sections: Iterable[tuple[str, str]]) -> list[Row]:
    """Of sections, each with its contenders in a word."""
    contenders = [
        contender(section, name, {"us": 1.0}) for section, names in sections for name in names.split()
    ]
    (answer,) = read(
        records.write(directory, records.run(question(contenders, column("us", "total"))))
    ).answers
    return rows(answer, answer.question.tables[0])


def _titles(row: Row) -> list[str]:
    return [row.title(place) for place in range(len(row.panels))]


def test_a_panel_has_the_ratios_of_its_section(tmp_path: Path) -> None:
    (answer,) = read(records.write(tmp_path, records.run(records.parked()))).answers

    callbacks, tasks = rows(answer, answer.question.tables[0])

    assert dict(callbacks.panels[0].ratios) == {
        "purgatory": Spread(1.0, 1.0, 1.0),
        "Future": Spread(3.5, 3.0, 4.0),
        "bare": Spread(0.25, 0.25, 0.25),
    }
    assert tasks.names == ("purgatory", "wait_for(event.wait(), t)")


def test_sections_with_nearly_the_same_contenders_share_a_row(tmp_path: Path) -> None:
    found = _rows(tmp_path, [("on", "purgatory a b c"), ("few", "purgatory a"), ("off", "purgatory a b")])

    assert [_titles(row) for row in found] == [["on", "off"], ["few"]]
    assert found[0].names == ("purgatory", "a", "b", "c")


def test_sections_that_differ_in_their_n_share_a_row_and_its_title(tmp_path: Path) -> None:
    sections = [
        (f"{style}, N = {size}", "purgatory a" if size == "100" else "purgatory a b c")
        for size in ("1,000", "100", "10,000")
        for style in ("callbacks", "tasks")
    ]

    found = _rows(tmp_path, sections)

    assert [_titles(row) for row in found] == [
        ["callbacks\nn = 100", "n = 1,000", "n = 10,000"],
        ["tasks\nn = 100", "n = 1,000", "n = 10,000"],
    ]


def test_four_share_two_rows(tmp_path: Path) -> None:
    found = _rows(tmp_path, [(section, "purgatory a") for section in "abcd"])

    assert [_titles(row) for row in found] == [["a", "b"], ["c", "d"]]


def test_a_section_with_nothing_to_compare_is_left_out(tmp_path: Path) -> None:
    assert _rows(tmp_path, [("alone", "purgatory")]) == []
