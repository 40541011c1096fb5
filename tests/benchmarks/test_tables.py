"""Answers as tables."""

from __future__ import annotations

from rich.console import Console

from benchmarks import tables
from tests.benchmarks.fakes import answer, contender

REFERENCE, OTHER, SILENT = contender("purgatory"), contender("other"), contender("silent")


def rows(text: str) -> dict[str, list[str]]:
    """The cells of each row, by its first."""
    cells = (line.split() for line in text.splitlines())
    return {row[0]: row[1:] for row in cells if row}


def test_a_row_has_the_ratio_the_median_with_its_spread_and_how_often_it_was_measured() -> None:
    console = Console(width=tables.WIDTH, highlight=False)
    with console.capture() as capture:
        tables.show(
            answer(
                {
                    REFERENCE: [{"us": 1.0, "held": 7.0}, {"us": 2.0, "held": 8.0}, {"us": 4.0, "held": 9.0}],
                    OTHER: [{"us": 3.0}, {"us": 2.0}, {"us": 2.0}],
                    SILENT: [{"else": 1.0}],
                }
            ),
            console,
        )
    shown = rows(capture.get())
    assert shown["purgatory"] == ["1", "2.00", "(1.00-4.00)", "8.00", "3"]
    assert shown["other"] == ["1.00", "2.00", "(2.00-3.00)", "-", "3"]
    # It has no figure for this table.
    assert "silent" not in shown
    assert "Of n." in capture.get()


def test_without_a_compiled_build_the_run_says_so() -> None:
    console = Console(width=tables.WIDTH, highlight=False)
    with console.capture() as capture:
        tables.introduce(console, "asyncio", ["compiled", "interpreted"], 5)
    assert "not a compiled one" not in capture.get()
    with console.capture() as capture:
        tables.introduce(console, "asyncio", ["interpreted"], 5)
    assert "not a compiled one" in capture.get()


def test_figures_have_three_digits_or_all_before_the_point() -> None:
    assert [tables.figure(value) for value in (0.126, 9.996, 12.34, 123.4, 1234567.0)] == [
        *("0.13", "10.00", "12.3", "123", "1,234,567")
    ]
