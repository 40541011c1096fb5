"""Quantities in words."""

from __future__ import annotations

import pytest

from purgatory.pipeline.text import duration, percent


@pytest.mark.parametrize(
    ("share", "printed"),
    [(0.99899, "99.89 %"), (0.29, "29 %"), (0.0, "0 %"), (0.99996, "99.99 %"), (1.0, "100 %")],
)
def test_shares_are_rounded_down(share: float, printed: str) -> None:
    assert percent(share) == printed


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 µs"),
        (999, "999 µs"),
        (1_000, "1.00 ms"),
        (12_345, "12.3 ms"),
        (999_900, "1,000 ms"),
        (1_000_000, "1.00 s"),
        (10_000_000, "10.0 s"),
        (100_000_000, "100 s"),
        (119_000_000, "119 s"),
        (120_000_000, "2.00 min"),
        (7_200_000_000, "2.00 h"),
        (7.2e13, "20,000 h"),
    ],
)
def test_durations_have_three_digits_and_a_fitting_unit(microseconds: float, text: str) -> None:
    assert duration(microseconds) == text
