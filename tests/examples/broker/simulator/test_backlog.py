"""The trend of a backlog."""

import pytest

from examples.broker.simulator.backlog import Backlog


def test_without_samples_there_is_no_backlog() -> None:
    backlog = Backlog()
    assert (backlog.latest, backlog.peak, backlog.growth_per_second, backlog.history) == (0, 0, 0, [])
    assert not backlog.is_growing(rate=1_000)


def test_a_backlog_that_goes_up_and_down_does_not_grow() -> None:
    backlog = Backlog()
    for tenth in range(100):
        backlog.sample(tenth / 10, 500 if tenth % 2 else 0)
    assert abs(backlog.growth_per_second) < 5
    assert not backlog.is_growing(rate=1_000)


def test_a_backlog_that_gains_a_tenth_of_the_rate_grows() -> None:
    backlog = Backlog()
    for tenth in range(100):
        backlog.sample(tenth / 10, tenth * 10 + (tenth % 3) * 20)
    assert backlog.growth_per_second == pytest.approx(100, rel=0.05)
    assert backlog.is_growing(rate=1_000)


def test_one_stall_at_the_end_is_no_growth() -> None:
    backlog = Backlog()
    for tenth in range(100):
        backlog.sample(tenth / 10, 0 if tenth < 99 else 100)
    assert not backlog.is_growing(rate=1_000)


def test_short_peaks_are_no_growth() -> None:
    backlog = Backlog()
    for tenth in range(3):
        backlog.sample(tenth / 10, tenth * 20)
    assert backlog.growth_per_second == pytest.approx(200)
    assert not backlog.is_growing(rate=1_000)


def test_the_history_has_the_whole_run_and_its_peaks_in_bounded_memory() -> None:
    backlog = Backlog()
    for second in range(10_000):
        backlog.sample(second, 7_000 if second == 1_234 else second % 10)
    assert 64 <= len(backlog.history) <= 128
    assert max(backlog.history) == backlog.peak == 7_000
    assert backlog.history.index(7_000) / len(backlog.history) == pytest.approx(0.1234, abs=0.02)
    assert backlog.latest == 9
