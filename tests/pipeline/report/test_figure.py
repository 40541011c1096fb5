"""Axes and scales."""

from __future__ import annotations

import pytest

from purgatory.pipeline.report.figure import COLOURS, colours, log_ticks, scale_from_zero, selection_note


def test_a_wide_logarithmic_axis_is_labelled_at_powers_of_ten() -> None:
    assert log_ticks([3, 40_000]) == [10, 100, 1_000, 10_000]


def test_a_narrow_one_at_two_and_five_times_these_too() -> None:
    assert log_ticks([30, 400]) == [50, 100, 200, 500]


def test_an_axis_without_values_has_a_label_all_the_same() -> None:
    assert log_ticks([]) == [1]


@pytest.mark.parametrize(("values", "top"), [([], 1), ([0, 0], 1), ([2, 0.5], 2)])
def test_a_scale_from_zero_has_some_height(values: list[float], top: float) -> None:
    assert scale_from_zero(values)["domain"] == [0, top]


def test_as_many_series_have_a_colour_as_can_be_told_apart() -> None:
    assert colours("abcdefgh") == dict(zip("abcdef", COLOURS, strict=True))


def test_it_is_said_which_are_not_selection_note() -> None:
    assert selection_note(6, 1_000, "kinds, the first") == "Drawn are 6 of 1,000 kinds, the first."
    assert selection_note(6, 6, "kinds, the first") == ""
