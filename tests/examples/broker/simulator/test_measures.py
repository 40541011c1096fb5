"""Percentiles of waits, and the trend of a backlog."""

from collections.abc import Iterable

import pytest

from examples.broker.simulator.measures import Backlog, BacklogStatus, Waits, WaitSummary


def test_no_waits_are_all_zero() -> None:
    assert Waits().summary() == WaitSummary(0, 0.0, 0.0, 0.0)


def test_a_percentile_is_the_wait_that_so_many_did_not_exceed() -> None:
    waits = Waits()
    for milliseconds in reversed(range(1, 201)):
        waits.record(milliseconds / 1000)
    assert waits.summary() == WaitSummary(200, 0.1, 0.198, 0.2)
    waits.record(0.05)
    assert waits.summary() == WaitSummary(201, 0.1, 0.198, 0.2)


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
