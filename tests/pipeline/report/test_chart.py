"""Axes and scales."""

from __future__ import annotations

import pytest

from purgatory.pipeline.report.chart import (
    COLOURS,
    colours,
    count_axis,
    log_ticks,
    scale_from_zero,
    selection_note,
    share_axis,
)


def test_a_wide_logarithmic_axis_is_labelled_at_powers_of_ten() -> None:
    assert log_ticks([3, 40_000]) == [10, 100, 1_000, 10_000]


def test_a_narrow_logarithmic_axis_is_also_labelled_at_2_and_5_times_these() -> None:
    assert log_ticks([30, 400]) == [50, 100, 200, 500]


def test_an_axis_without_values_has_a_label() -> None:
    assert log_ticks([]) == [1]


@pytest.mark.parametrize(("values", "top"), [([], 1), ([0, 0], 1), ([2, 0.5], 2)])
def test_a_scale_from_zero_is_never_empty(values: list[float], top: float) -> None:
    assert scale_from_zero(values)["domain"] == [0, top]


def test_the_first_series_have_a_colour() -> None:
    assert colours("abcdefgh") == dict(zip("abcdef", COLOURS, strict=True))


def test_a_note_says_which_series_are_shown() -> None:
    assert selection_note(6, 1_000, "kinds, the first") == "The charts show 6 of 1,000 kinds, the first."
    assert selection_note(6, 6, "kinds, the first") == ""


def test_an_axis_of_counts_shortens_no_count() -> None:
    label = count_axis("pending").to_dict()["labelExpr"]
    assert label == "format(datum.value, datum.value < 1 ? '~r' : ',')"


def test_an_axis_of_shares_writes_them_as_all_displays_do() -> None:
    assert share_axis("expired").to_dict()["labelExpr"] == "format(100 * datum.value, '~r') + ' %'"
