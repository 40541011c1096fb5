"""The plan of a load, and each design under load, in virtual time."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest

from benchmarks.designs import KAFKAS
from benchmarks.designs.alternative import RoundTrips
from benchmarks.designs.purgatory_waits import PurgatoryCallback
from benchmarks.suites import load
from benchmarks.suites.load import DESIGNS, PurgatoryRequest, generator, measure
from benchmarks.suites.load.generator import BEHIND_MS, Generator
from benchmarks.suites.load.plan import LONG, SHORT, Distribution, Plan
from purgatory.testing import VirtualTimeLoop

RATE = 5_000


def drawn(distribution: Distribution = SHORT) -> Plan:
    return Plan.draw(distribution, RATE, 0.5)


@pytest.mark.parametrize("distribution", [SHORT, LONG], ids=str)
@pytest.mark.parametrize("design", DESIGNS)
async def test_a_design_ends_every_request_once_and_as_planned(
    design: type[RoundTrips], distribution: Distribution, virtual_time: VirtualTimeLoop
) -> None:
    plan = drawn(distribution)
    measured = await measure(design, plan, virtual_time.time)
    assert measured["sent"] == measured["completed"] + measured["expired"] == len(plan)
    # But for those that would complete in the very milliseconds in which they expire.
    assert measured["completed"] == pytest.approx(sum(plan.completes), rel=0.02)
    assert measured["achieved"] == pytest.approx(RATE, rel=0.03)
    assert measured["behind_ms"] <= 2
    if design in KAFKAS:
        # A purge is due after 1,000 requests with 3 keys each; more of them may come before it.
        assert 0 < measured["held"] < 2 * 3_000 < measured["sent"] * 3
    else:
        assert 0 <= measured["late_p50_ms"] <= measured["late_p99_ms"] <= 1.001


async def test_a_design_that_loses_a_request_is_refused(
    virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "PATIENCE", 1.0)

    def forgotten(timeout: float, number: int, generator: Generator) -> PurgatoryRequest:
        request = PurgatoryRequest(timeout, number, generator)
        if number == 7:
            virtual_time.call_later(0.0, request.cancel)
        return request

    monkeypatch.setattr(load, "REQUESTS", {PurgatoryCallback: forgotten})
    with pytest.raises(AssertionError, match="requests ended once"):
        await measure(PurgatoryCallback, drawn(), virtual_time.time)


async def test_a_saturated_run_achieves_what_was_sent_in_its_time(
    virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(timeout: float, number: int, generator: Generator) -> PurgatoryRequest:
        virtual_time.jump(0.001)
        return PurgatoryRequest(timeout, number, generator)

    monkeypatch.setattr(load, "REQUESTS", {PurgatoryCallback: slow})
    measured = await measure(PurgatoryCallback, drawn(), virtual_time.time)
    assert measured["achieved"] == pytest.approx(1_000, rel=0.05)
    assert measured["behind_ms"] > BEHIND_MS


@pytest.mark.parametrize("distribution", [SHORT, LONG], ids=str)
def test_the_times_drawn_have_the_median_and_the_third_quartile_asked_for(distribution: Distribution) -> None:
    plan = Plan.draw(replace(distribution, timeout_ms=math.inf), 20_000, 1.0)
    drawn = zip(plan.completions, plan.completing, strict=False)
    times = [when - plan.arrivals[request] for when, request in drawn]
    _, median, third = statistics.quantiles(times, n=4)
    assert median == pytest.approx(distribution.p50_ms / 1e3, rel=0.05)
    assert third == pytest.approx(distribution.p75_ms / 1e3, rel=0.05)


@pytest.mark.parametrize(("distribution", "part"), [(SHORT, 0.92), (LONG, 0.5)])
def test_requests_arrive_at_the_rate_and_as_many_complete_as_are_drawn_sooner_than_the_timeout(
    distribution: Distribution, part: float
) -> None:
    plan = Plan.draw(distribution, 20_000, 1.0)
    assert len(plan) == pytest.approx(20_000, rel=0.02)
    assert 0 < plan.arrivals[0] < plan.arrivals[-2] < 1.0
    assert sum(plan.completes) / len(plan) == pytest.approx(part, abs=0.01)
    assert len(plan.completing) == sum(plan.completes)


@pytest.mark.parametrize("sent", [1, 17, 500])
def test_the_tail_lasts_from_the_last_arrival_to_the_last_end(sent: int) -> None:
    plan = Plan.draw(LONG, 5_000, 0.2)
    ends = {request: plan.arrivals[request] + plan.timeout for request in range(sent)}
    ends |= {r: when for when, r in zip(plan.completions, plan.completing, strict=False) if r < sent}
    assert plan.tail(sent) == max(ends.values()) - plan.arrivals[sent - 1]
