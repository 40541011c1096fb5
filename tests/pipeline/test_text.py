"""Quantities in words."""

from __future__ import annotations

import pytest

from purgatory.pipeline.text import counted, duration, less, percent, rounded
from tests.shown import DURATIONS


@pytest.mark.parametrize(
    ("share", "printed"),
    [
        (0.99899, "99.89 %"),
        (0.29, "29 %"),
        (0.0, "0 %"),
        (0.00004, "< 0.01 %"),
        (0.0001, "0.01 %"),
        (0.99996, "99.99 %"),
        (1.0, "100 %"),
    ],
)
def test_shares_are_rounded_down_and_only_nothing_is_zero(share: float, printed: str) -> None:
    assert percent(share) == printed


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (3451.2, "3,451"),
        (123.4, "123"),
        (34.52, "34.5"),
        (50.0, "50"),
        (9.999, "10"),
        (1.5, "1.5"),
        (0.43218, "0.432"),
        (0.0000123456, "0.0000123"),
        (0, "0"),
        (1000, "1,000"),
    ],
)
def test_numbers_have_three_digits_and_no_exponent(number: float, printed: str) -> None:
    assert rounded(number) == printed


def test_no_difference_is_said_as_such() -> None:
    assert [less(time) for time in (2e6, -3e3, 0.2)] == ["2.00 s less", "3.00 ms more", "as long"]


def test_one_of_a_thing_is_in_the_singular() -> None:
    assert [counted(number, "move") for number in (0, 1, 2_000)] == ["0 moves", "1 move", "2,000 moves"]


@pytest.mark.parametrize(("microseconds", "text"), DURATIONS.items())
def test_durations_have_three_digits_or_two_units(microseconds: float, text: str) -> None:
    assert duration(microseconds) == text
