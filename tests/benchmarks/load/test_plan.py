"""What is drawn before a run: when requests arrive, and when they complete."""

from __future__ import annotations

import statistics
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random

import pytest

from benchmarks.load.distribution import DISTRIBUTIONS, Distribution, Load
from benchmarks.load.plan import Plan


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_the_times_drawn_have_the_median_and_the_third_quartile_asked_for(distribution: Distribution) -> None:
    random = Random(1)
    _, median, third = statistics.quantiles((distribution.draw(random) for _ in range(50_000)), n=4)
    assert median == pytest.approx(distribution.p50_ms / 1e3, rel=0.03)
    assert third == pytest.approx(distribution.p75_ms / 1e3, rel=0.03)


@pytest.mark.parametrize(("distribution", "part"), list(zip(DISTRIBUTIONS, (0.92, 0.5), strict=True)))
def test_as_many_complete_as_are_drawn_sooner_than_the_timeout(
    distribution: Distribution, part: float
) -> None:
    plan = Plan.draw(Load(distribution, 20_000, 1.0), seed=1)
    assert sum(plan.completes) / len(plan) == pytest.approx(part, abs=0.01)
    assert len(plan.completing) == sum(plan.completes)


def test_requests_arrive_at_the_rate_whatever_the_time_since_the_last() -> None:
    plan = Plan.draw(Load(DISTRIBUTIONS[0], 10_000, 2.0), seed=1)
    arrivals = plan.arrivals[:-1]
    assert len(plan) == len(arrivals) == pytest.approx(20_000, rel=0.02)
    assert arrivals[0] > 0
    assert arrivals[-1] < 2.0
    gaps = [later - earlier for earlier, later in pairwise(arrivals)]
    # The deviation of an exponential distribution is its mean.
    assert statistics.stdev(gaps) == pytest.approx(1e-4, rel=0.03)


def test_each_completion_lies_between_the_arrival_of_its_request_and_the_timeout() -> None:
    plan = Plan.draw(Load(DISTRIBUTIONS[1], 5_000, 0.5), seed=1)
    completions = plan.completions[:-1]
    assert list(completions) == sorted(completions)
    for when, request in zip(completions, plan.completing, strict=True):
        assert plan.completes[request]
        assert 0 < when - plan.arrivals[request] < plan.timeout == 0.2


def test_the_times_end_with_infinity() -> None:
    plan = Plan.draw(Load(DISTRIBUTIONS[0], 100, 0.1), seed=1)
    assert plan.arrivals[len(plan)] == plan.completions[len(plan.completing)] == inf


def test_a_seed_gives_the_same_plan_again_and_another_seed_another() -> None:
    load = Load(DISTRIBUTIONS[0], 1_000, 0.1)
    assert Plan.draw(load, seed=1) == Plan.draw(load, seed=1) != Plan.draw(load, seed=2)


def test_a_plan_is_the_same_when_it_has_been_written_and_read(tmp_path: Path) -> None:
    plan = Plan.draw(Load(DISTRIBUTIONS[0], 1_000, 0.1), seed=1)
    plan.write(tmp_path / "plan")
    assert Plan.read(tmp_path / "plan") == plan


@pytest.mark.parametrize("sent", [1, 17, 500])
def test_the_tail_lasts_from_the_last_arrival_to_the_last_end(sent: int) -> None:
    plan = Plan.draw(Load(DISTRIBUTIONS[1], 5_000, 0.2), seed=1)
    ends = {request: plan.arrivals[request] + plan.timeout for request in range(sent)}
    ends |= {r: when for when, r in zip(plan.completions, plan.completing, strict=False) if r < sent}
    assert plan.tail(sent) == max(ends.values()) - plan.arrivals[sent - 1]


def test_a_plan_without_requests_is_refused() -> None:
    with pytest.raises(ValueError, match="no request arrives: p50/p75 20/60 ms, 1 requests/s for 1e-09 s"):
        Plan.draw(Load(DISTRIBUTIONS[0], 1, 1e-9), seed=1)
