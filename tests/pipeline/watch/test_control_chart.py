"""The band: exact for what it assumes, quiet while nothing changes, and prompt when something does."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory.pipeline.control_chart import (
    FALSE_ALARM_RATE,
    MIN_BASELINE,
    MAX_BASELINE,
    SHIFT_RUN,
    ControlChart,
    Assessment,
)


def chart_after(count: int, operations: int, windows: int = MAX_BASELINE) -> ControlChart:
    found = ControlChart()
    for _ in range(windows):
        found.assess(count, operations)
    return found


def assessed(band: ControlChart, count: int, operations: int) -> Assessment:
    assessment = band.assess(count, operations)
    assert assessment is not None
    return assessment


def outside(windows: Iterable[tuple[int, int]]) -> int:
    found = ControlChart()
    assessments = [found.assess(count, operations) for count, operations in windows]
    return sum(assessment is not None and assessment.outside for assessment in assessments)


def test_none_is_judged_before_there_are_some_to_compare_it_with() -> None:
    found = chart_after(1, 100, MIN_BASELINE - 1)
    assert found.assess(100, 100) is None
    assert found.assess(100, 100) is not None


@pytest.mark.parametrize("ratio", [0.001, 0.1, 0.5])
@pytest.mark.parametrize("alike", [None, 500], ids=["by chance alone", "by more than chance"])
def test_a_steady_ratio_hardly_ever_leaves_its_band(ratio: float, alike: float | None) -> None:
    draw = np.random.default_rng(3)
    windows = []
    for operations in draw.lognormal(5, 2, size=1500).astype(int) + 1:
        drawn = ratio if alike is None else draw.beta(ratio * alike, (1 - ratio) * alike)
        windows.append((int(draw.binomial(operations, drawn)), int(operations)))
    # Of nine thousand in all it would be one, at the rate that is promised.
    assert outside(windows) <= 1


@given(
    usual=st.floats(0, 0.5),
    jump=st.floats(0.1, 0.5),
    operations=st.integers(500, 5_000),
    windows=st.integers(MIN_BASELINE, MAX_BASELINE),
)
def test_a_jump_is_seen_in_the_first_window_with_enough_operations(
    usual: float, jump: float, operations: int, windows: int
) -> None:
    found = chart_after(round(operations * usual), operations, windows)
    assessment = assessed(found, round(operations * (usual + jump)), operations)
    assert assessment.outside
    assert assessment.center == pytest.approx(usual, abs=0.01)
    back = assessed(found, round(operations * usual), operations)
    assert not back.outside


@pytest.mark.parametrize("usual", [10, 100])
def test_two_operations_are_never_enough(usual: int) -> None:
    assert not assessed(chart_after(usual, 1000), 2, 2).outside


def test_a_fall_is_seen_as_well() -> None:
    assert assessed(chart_after(500, 1000), 300, 1000).outside


def test_what_has_never_happened_may_happen_now_and_then_but_not_often() -> None:
    found = chart_after(0, 1000)
    assert not assessed(found, 1, 1000).outside
    assert assessed(found, 10, 1000).outside


def test_it_is_wider_where_the_windows_before_differ_by_more_than_chance() -> None:
    alike, unlike = chart_after(1000, 10_000), ControlChart()
    for number in range(MAX_BASELINE):
        unlike.assess(1500 if number % 2 else 500, 10_000)
    assert assessed(alike, 1500, 10_000).outside
    assert not assessed(unlike, 1500, 10_000).outside
    # And no less so for windows that are much larger.
    assert not assessed(unlike, 150_000, 1_000_000).outside


def test_it_is_wider_for_few_operations_and_while_it_knows_few_windows() -> None:
    def width(windows: int, operations: int) -> float:
        found = ControlChart()
        for number in range(windows):
            found.assess(110 if number % 2 else 90, 1000)
        low, high = assessed(found, operations // 10, operations).limits
        return (high - low) / operations

    assert width(MAX_BASELINE, 100) > 2 * width(MAX_BASELINE, 1000)
    assert width(MIN_BASELINE, 1000) > 1.2 * width(MAX_BASELINE, 1000)


def test_windows_without_any_difference_still_leave_room_for_one() -> None:
    assert assessed(chart_after(5, 10), 5, 10).limits == (0, 10)


def test_ratios_from_none_to_all_make_nothing_unusual() -> None:
    found = ControlChart()
    for number in range(MAX_BASELINE):
        found.assess(1000 * (number % 2), 1000)
    assert assessed(found, 1000, 1000).limits == (0, 1000)


def test_what_is_outside_does_not_make_it_wider() -> None:
    found = chart_after(100, 1000)
    first = assessed(found, 300, 1000)
    again = assessed(found, 300, 1000)
    assert again == first


def test_only_the_latest_windows_are_remembered() -> None:
    found = chart_after(100, 1000)
    for _ in range(MAX_BASELINE):
        found.assess(110, 1000)
    assert assessed(found, 110, 1000).center == pytest.approx(0.11, abs=1e-4)


def test_what_is_outside_for_long_becomes_usual() -> None:
    found = chart_after(100, 1000)
    for _ in range(SHIFT_RUN - 1):
        assert not assessed(found, 300, 1000).shifted
    # In a row, that is.
    assert not assessed(found, 100, 1000).outside
    shifted = [assessed(found, 300, 1000).shifted for _ in range(SHIFT_RUN)]
    assert shifted == [*[False] * (SHIFT_RUN - 1), True]
    assert not assessed(found, 300, 1000).outside
    assert assessed(found, 100, 1000).outside


def test_counting_the_others_gives_the_same_band_the_other_way_round() -> None:
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


def test_it_says_how_much_it_knows() -> None:
    found = chart_after(1, 100, MIN_BASELINE)
    found.assess(90, 100)
    assert repr(found) == "<ControlChart of 12 windows, 1 outside since>"
