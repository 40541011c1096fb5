"""The control chart: exact for its model, quiet while nothing changes, and fast to detect a change."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory.pipeline.watch.control_chart import (
    FALSE_ALARM_RATE,
    MAX_BASELINE,
    MIN_BASELINE,
    SHIFT_RUN,
    Assessment,
    ControlChart,
)


def chart_after(count: int, operations: int, windows: int = MAX_BASELINE) -> ControlChart:
    chart = ControlChart()
    for _ in range(windows):
        chart.assess(count, operations)
    return chart


def assessed(chart: ControlChart, count: int, operations: int) -> Assessment:
    assessment = chart.assess(count, operations)
    assert assessment is not None
    return assessment


def outside(windows: Iterable[tuple[int, int]]) -> int:
    chart = ControlChart()
    assessments = [chart.assess(count, operations) for count, operations in windows]
    return sum(assessment is not None and assessment.outside for assessment in assessments)


def test_no_window_is_assessed_before_there_is_a_baseline() -> None:
    chart = chart_after(1, 100, MIN_BASELINE - 1)
    assert chart.assess(100, 100) is None
    assert chart.assess(100, 100) is not None


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("ratio", [0.001, 0.1, 0.5])
@pytest.mark.parametrize("alike", [None, 500], ids=["by chance alone", "by more than chance"])
def test_a_steady_ratio_hardly_ever_leaves_the_control_limits(ratio: float, alike: float | None) -> None:
    draw = np.random.default_rng(3)
    windows = []
    for operations in draw.lognormal(5, 2, size=1500).astype(int) + 1:
        drawn = ratio if alike is None else draw.beta(ratio * alike, (1 - ratio) * alike)
        windows.append((int(draw.binomial(operations, drawn)), int(operations)))
    # At the promised rate, it would be one of nine thousand in all.
    assert outside(windows) <= 1


@given(
    center=st.floats(0, 0.5),
    jump=st.floats(0.1, 0.5),
    operations=st.integers(500, 5_000),
    windows=st.integers(MIN_BASELINE, MAX_BASELINE),
)
def test_a_jump_is_detected_in_the_first_window_with_enough_operations(
    center: float, jump: float, operations: int, windows: int
) -> None:
    chart = chart_after(round(operations * center), operations, windows)
    assessment = assessed(chart, round(operations * (center + jump)), operations)
    assert assessment.outside
    assert assessment.center == pytest.approx(center, abs=0.01)
    back = assessed(chart, round(operations * center), operations)
    assert not back.outside


@pytest.mark.parametrize("center", [10, 100])
def test_two_operations_are_never_outside(center: int) -> None:
    assert not assessed(chart_after(center, 1000), 2, 2).outside


def test_a_fall_is_detected() -> None:
    assert assessed(chart_after(500, 1000), 300, 1000).outside


def test_after_a_baseline_of_zero_one_event_is_inside_and_ten_are_outside() -> None:
    chart = chart_after(0, 1000)
    assert not assessed(chart, 1, 1000).outside
    assert assessed(chart, 10, 1000).outside


def test_the_limits_are_wider_if_the_baseline_differs_by_more_than_chance() -> None:
    alike, unlike = chart_after(1000, 10_000), ControlChart()
    for number in range(MAX_BASELINE):
        unlike.assess(1500 if number % 2 else 500, 10_000)
    assert assessed(alike, 1500, 10_000).outside
    assert not assessed(unlike, 1500, 10_000).outside
    # Nor for much larger windows.
    assert not assessed(unlike, 150_000, 1_000_000).outside


def test_the_limits_are_wider_for_few_operations_and_for_a_short_baseline() -> None:
    def width(windows: int, operations: int) -> float:
        chart = ControlChart()
        for number in range(windows):
            chart.assess(110 if number % 2 else 90, 1000)
        low, high = assessed(chart, operations // 10, operations).limits
        return (high - low) / operations

    assert width(MAX_BASELINE, 100) > 2 * width(MAX_BASELINE, 1000)
    assert width(MIN_BASELINE, 1000) > 1.2 * width(MAX_BASELINE, 1000)


def test_a_baseline_of_equal_windows_does_not_collapse_the_limits() -> None:
    assert assessed(chart_after(5, 10), 5, 10).limits == (0, 10)


def test_a_baseline_of_all_ratios_has_no_window_outside() -> None:
    chart = ControlChart()
    for number in range(MAX_BASELINE):
        chart.assess(1000 * (number % 2), 1000)
    assert assessed(chart, 1000, 1000).limits == (0, 1000)


def test_windows_outside_do_not_widen_the_limits() -> None:
    chart = chart_after(100, 1000)
    first = assessed(chart, 300, 1000)
    again = assessed(chart, 300, 1000)
    assert again == first


def test_only_the_latest_windows_are_in_the_baseline() -> None:
    chart = chart_after(100, 1000)
    for _ in range(MAX_BASELINE):
        chart.assess(110, 1000)
    assert assessed(chart, 110, 1000).center == pytest.approx(0.11, abs=1e-4)


def test_a_long_run_outside_the_limits_becomes_the_baseline() -> None:
    chart = chart_after(100, 1000)
    for _ in range(SHIFT_RUN - 1):
        assert not assessed(chart, 300, 1000).shifted
    # A window inside interrupts the run.
    assert not assessed(chart, 100, 1000).outside
    shifted = [assessed(chart, 300, 1000).shifted for _ in range(SHIFT_RUN)]
    assert shifted == [*[False] * (SHIFT_RUN - 1), True]
    assert not assessed(chart, 300, 1000).outside
    assert assessed(chart, 100, 1000).outside


def test_counting_the_other_operations_mirrors_the_limits() -> None:
    one, other = chart_after(100, 1000), chart_after(900, 1000)
    low, high = assessed(one, 90, 777).limits
    assert assessed(other, 687, 777).limits == (777 - high, 777 - low)


@given(operations=st.integers(1, 60), a=st.integers(1, 40), b=st.integers(1, 400))
def test_limits_are_those_of_the_beta_binomial_distribution(operations: int, a: int, b: int) -> None:
    def beta(x: int, y: int) -> Fraction:
        return Fraction(factorial(x - 1) * factorial(y - 1), factorial(x + y - 1))

    chances = [
        comb(operations, count) * beta(count + a, operations - count + b) / beta(a, b)
        for count in range(operations + 1)
    ]
    assert sum(chances) == 1
    half, mean = Fraction(FALSE_ALARM_RATE) / 2, Fraction(operations * a, a + b)
    inside = [
        count
        for count in range(operations + 1)
        if (count <= mean or sum(chances[count:]) >= half)
        and (count >= mean or sum(chances[: count + 1]) >= half)
    ]
    assessments = [Assessment(count, operations, a / (a + b), a + b) for count in range(operations + 1)]
    assert [assessment.count for assessment in assessments if not assessment.outside] == inside
    assert assessments[0].limits == (inside[0], inside[-1])


def test_its_repr_has_the_number_of_windows() -> None:
    chart = chart_after(1, 100, MIN_BASELINE)
    chart.assess(90, 100)
    assert repr(chart) == "<ControlChart of 12 windows, 1 outside since>"
