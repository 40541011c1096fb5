"""Axes have round numbers, written out."""

from __future__ import annotations

import pytest

from benchmarks.report.scale import number, ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.5, 2_000, [1, 10, 100, 1_000]),
        (0.25, 6, [0.3, 1, 3]),
        (0.9, 4, [1, 1.5, 2, 3]),
        (4, 25, [5, 10, 20]),
    ],
)
def test_ticks_are_round_and_few(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1 * 3, "0.3"), (1.0, "1"), (1.5, "1.5"), (20_000.0, "20,000"), (0.0, "0"), (1e6, "1,000,000")],
)
def test_numbers_are_written_out(value: float, text: str) -> None:
    assert number(value) == text
