"""Percentiles of waits, and the trend of a backlog."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.broker.simulator.measures import Backlog, BacklogStatus, WaitHistogram, WaitSummary


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


def backlog(amounts: Iterable[float]) -> BacklogStatus:
    """The status at a rate of 1,000 a second, after a sample in each tenth of a second."""
    sampled = Backlog()
    for tenth, amount in enumerate(amounts):
        sampled.sample(tenth / 10, amount)
    return sampled.status(rate=1_000)


def test_without_samples_there_is_no_backlog() -> None:
    assert backlog([]) == BacklogStatus(0, 0, 0, growing=False, history=())


@pytest.mark.parametrize(
    ("amounts", "growth", "growing"),
    [
        ([500 if tenth % 2 else 0 for tenth in range(100)], 0, False),
        ([tenth * 10 + (tenth % 3) * 20 for tenth in range(100)], 100, True),
        ([0] * 99 + [100], 0, False),
        ([0, 20, 40], 200, False),
        ([7], 0, False),
    ],
    ids=["up and down", "a tenth of the rate", "one stall at the end", "a short peak", "one sample"],
)
def test_a_backlog_grows_when_a_part_of_the_work_adds_to_it(
    amounts: list[float], growth: float, growing: bool
) -> None:
    status = backlog(amounts)
    assert status.growth_per_second == pytest.approx(growth, rel=0.05, abs=5)
    assert status.growing is growing
    assert (status.latest, status.peak, status.history) == (amounts[-1], max(amounts), tuple(amounts))
