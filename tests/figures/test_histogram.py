"""Histograms of durations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory._figures.histogram import LATENESS_BOUNDS, WAIT_BOUNDS, Histogram

DURATIONS = st.lists(st.floats(0, 1e6) | st.sampled_from(WAIT_BOUNDS))


def filled(durations: list[float]) -> Histogram:
    histogram = Histogram(WAIT_BOUNDS)
    for seconds in durations:
        histogram.count(seconds)
    return histogram


@given(DURATIONS)
def test_a_bucket_counts_the_durations_up_to_its_bound_and_above_the_previous_one(
    durations: list[float],
) -> None:
    histogram = filled(durations)
    up_to = [sum(each <= bound for each in durations) for bound in WAIT_BOUNDS] + [len(durations)]
    assert [sum(histogram.counts[: index + 1]) for index in range(len(up_to))] == up_to
    assert histogram.sum == pytest.approx(sum(durations))


@given(DURATIONS, st.floats(0, 1))
def test_a_quantile_is_the_first_bound_that_enough_durations_do_not_exceed(
    durations: list[float], share: float
) -> None:
    expected = [
        bound
        for bound in WAIT_BOUNDS
        if (up_to := sum(each <= bound for each in durations)) > 0 and up_to >= share * len(durations)
    ]
    assert filled(durations).quantile(share) == (expected[0] if expected else None)


@given(DURATIONS, DURATIONS)
def test_adding_histograms_counts_the_durations_of_both(first: list[float], second: list[float]) -> None:
    total = Histogram(WAIT_BOUNDS)
    total.add([filled(first), filled(second)])
    assert total.counts == filled(first + second).counts
    assert total.sum == pytest.approx(sum(first) + sum(second))


@pytest.mark.parametrize("bounds", [WAIT_BOUNDS, LATENESS_BOUNDS])
def test_bounds_ascend(bounds: tuple[float, ...]) -> None:
    assert list(bounds) == sorted(set(bounds))


def test_operations_with_a_usual_timeout_expire_in_the_bucket_of_the_timeout() -> None:
    for timeout in (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 3, 5, 10, 15, 20, 25, 30, 45, 60, 90, 120, 180, 240):
        above = next(bound for bound in WAIT_BOUNDS if bound >= timeout)
        # Also when they expire two ticks late.
        assert above >= timeout + 0.002


def test_its_repr_has_the_number_of_durations() -> None:
    assert repr(filled([1, 2])) == "<Histogram of 2 durations>"
