"""Percentiles from a histogram."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.broker.simulator.waits import WaitHistogram, WaitSummary


def test_no_waits_are_all_zero() -> None:
    assert WaitHistogram().summary() == WaitSummary(0, 0.0, 0.0, 0.0)


@given(st.lists(st.floats(1e-6, 900), min_size=1, max_size=200), st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0]))
def test_a_percentile_is_at_most_2_percent_too_high(waits: list[float], fraction: float) -> None:
    histogram = WaitHistogram()
    for wait in waits:
        histogram.record(wait)
    ranked = sorted(waits)
    exact = next(wait for rank, wait in enumerate(ranked, 1) if rank >= fraction * len(ranked))
    assert exact * (1 - 1e-9) <= histogram.percentile(fraction) <= exact * 1.0201


def test_waits_out_of_range_count_at_its_bounds_and_the_maximum_is_exact() -> None:
    histogram = WaitHistogram()
    for wait in (0.0, -1.0, 5_000.0):
        histogram.record(wait)
    summary = histogram.summary()
    assert (summary.count, summary.max) == (3, 5_000.0)
    assert summary.p50 == pytest.approx(1e-6, rel=0.03)


def test_many_waits_need_no_more_memory_than_one() -> None:
    histogram = WaitHistogram()
    chance = random.Random(1)
    for _ in range(10_000):
        histogram.record(chance.expovariate(1_000))
    summary = histogram.summary()
    assert len(histogram._counts) < 1_100
    assert summary.p50 == pytest.approx(0.000693, rel=0.05)
    assert summary.p99 == pytest.approx(0.0046, rel=0.1)
