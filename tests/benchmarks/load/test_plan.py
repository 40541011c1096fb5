"""The plan of a run: when requests arrive, and when they complete."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest

from benchmarks.suites.load.plan import LONG, SHORT, Distribution, Plan


@pytest.mark.parametrize("distribution", [SHORT, LONG], ids=str)
def test_the_times_drawn_have_the_median_and_the_third_quartile_asked_for(distribution: Distribution) -> None:
    plan = Plan.draw(replace(distribution, timeout_ms=math.inf), 20_000, 1.0)
    drawn = zip(plan.completions, plan.completing, strict=False)
    times = [when - plan.arrivals[request] for when, request in drawn]
    _, median, third = statistics.quantiles(times, n=4)
    assert median == pytest.approx(distribution.p50_ms / 1e3, rel=0.05)
    assert third == pytest.approx(distribution.p75_ms / 1e3, rel=0.05)


@pytest.mark.parametrize(("distribution", "part"), [(SHORT, 0.92), (LONG, 0.5)])
def test_as_many_complete_as_are_drawn_sooner_than_the_timeout(
    distribution: Distribution, part: float
) -> None:
    plan = Plan.draw(distribution, 20_000, 1.0)
    assert sum(plan.completes) / len(plan) == pytest.approx(part, abs=0.01)
    assert len(plan.completing) == sum(plan.completes)


def test_requests_arrive_at_the_rate() -> None:
    plan = Plan.draw(SHORT, 10_000, 2.0)
    assert len(plan) == pytest.approx(20_000, rel=0.02)
    assert 0 < plan.arrivals[0] < plan.arrivals[-2] < 2.0


@pytest.mark.parametrize("sent", [1, 17, 500])
def test_the_tail_lasts_from_the_last_arrival_to_the_last_end(sent: int) -> None:
    plan = Plan.draw(LONG, 5_000, 0.2)
    ends = {request: plan.arrivals[request] + plan.timeout for request in range(sent)}
    ends |= {r: when for when, r in zip(plan.completions, plan.completing, strict=False) if r < sent}
    assert plan.tail(sent) == max(ends.values()) - plan.arrivals[sent - 1]
